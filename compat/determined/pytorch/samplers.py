"""Samplers that make a data set reproducible."""

from resolute.pytorch.samplers import *
