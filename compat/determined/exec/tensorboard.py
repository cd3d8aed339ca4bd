"""Serves TensorBoard as a task: ``python3 -m determined.exec.tensorboard``."""

import sys

from resolute_launch.exec import tensorboard

if __name__ == "__main__":
    sys.exit(tensorboard.main())

sys.modules[__name__] = tensorboard
