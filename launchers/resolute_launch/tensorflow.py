"""Runs ``layers/tensorflow`` under its documented name: ``python3 -m resolute_launch.tensorflow``."""

import sys

from resolute_launch.layers import tensorflow

if __name__ == "__main__":
    sys.exit(tensorflow.main())

sys.modules[__name__] = tensorflow
