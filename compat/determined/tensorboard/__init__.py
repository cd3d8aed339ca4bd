"""Directories of TensorBoard events, and writers of older releases."""

from resolute.tensorboard import *
