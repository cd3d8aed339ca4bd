"""Names of TensorBoard files that several ranks write."""

import sys

import resolute.tensorboard.util
from resolute.tensorboard.util import *

sys.modules[__name__] = sys.modules["resolute.tensorboard.util"]
