"""Starts a worker of TensorFlow in each container: ``python3 -m determined.launch.tensorflow``."""

import sys

from resolute_launch.layers import tensorflow

if __name__ == "__main__":
    sys.exit(tensorflow.main())

sys.modules[__name__] = tensorflow
