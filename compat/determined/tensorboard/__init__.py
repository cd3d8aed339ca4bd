"""Where scripts write TensorBoard events, and older writers of them."""

from resolute.tensorboard import *
