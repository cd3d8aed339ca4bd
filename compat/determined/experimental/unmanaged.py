"""Unmanaged trials, created in separate calls."""

import sys

import resolute.core_v2.unmanaged
from resolute.core_v2.unmanaged import *

sys.modules[__name__] = sys.modules["resolute.core_v2.unmanaged"]
