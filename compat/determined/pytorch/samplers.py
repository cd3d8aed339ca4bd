"""Samplers that make a data set reproducible."""

import sys

import resolute.pytorch.data.samplers
from resolute.pytorch.data.samplers import *

sys.modules[__name__] = sys.modules["resolute.pytorch.samplers"]
