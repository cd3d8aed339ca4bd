"""What a script may know of the cluster that it runs on."""

import sys

import resolute.info
from resolute.info import *

sys.modules[__name__] = sys.modules["resolute.info"]
