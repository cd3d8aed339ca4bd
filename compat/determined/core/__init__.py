"""The Core API."""

import sys

import resolute.core
from resolute.core import *

sys.modules[__name__] = sys.modules["resolute.core"]
