"""The Core API for scripts that run anywhere."""

import sys

import resolute.core_v2
from resolute.core_v2 import *

sys.modules[__name__] = sys.modules["resolute.core_v2"]
