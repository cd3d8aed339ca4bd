"""Hugging Face's Trainer on the platform."""

import sys

import resolute.transformers
from resolute.transformers import *

sys.modules[__name__] = sys.modules["resolute.transformers"]
