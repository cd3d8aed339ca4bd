"""Unmanaged trials, created in separate calls."""

from resolute.core_v2.unmanaged import *
