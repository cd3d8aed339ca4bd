"""The Python SDK for people and tools."""

import sys

import resolute.client
from resolute.client import *

sys.modules[__name__] = sys.modules["resolute.client"]
