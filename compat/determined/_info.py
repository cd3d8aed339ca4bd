"""Information for a script about the cluster on which it runs."""

import sys

import resolute.info
from resolute.info import *

sys.modules[__name__] = sys.modules["resolute.info"]
