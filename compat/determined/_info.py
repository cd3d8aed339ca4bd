"""Information about the cluster for the script that runs on it."""

import sys

import resolute.info
from resolute.info import *

sys.modules[__name__] = sys.modules["resolute.info"]
