"""Serves TensorBoard as a task: ``python3 -m determined.exec.tensorboard``."""

import sys

from resolute_launch.exec.tensorboard import main

if __name__ == "__main__":
    sys.exit(main())
