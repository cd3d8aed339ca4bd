"""Starts a worker of TensorFlow in each container: ``python3 -m determined.launch.tensorflow``."""

import sys

from resolute_launch.layers.tensorflow import main

if __name__ == "__main__":
    sys.exit(main())
