"""Samplers that make a data set reproducible."""

import sys

import resolute.pytorch.samplers
from resolute.pytorch.samplers import *

sys.modules[__name__] = sys.modules["resolute.pytorch.samplers"]
