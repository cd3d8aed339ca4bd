"""Events by torch's writer."""

import sys

import resolute.tensorboard.metric_writers.pytorch
from resolute.tensorboard.metric_writers.pytorch import *

sys.modules[__name__] = sys.modules["resolute.tensorboard.metric_writers.pytorch"]
