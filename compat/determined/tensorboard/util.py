"""Names of TensorBoard files that several ranks write."""

from resolute.tensorboard.util import *
