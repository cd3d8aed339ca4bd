"""Small functions for scripts."""

import sys

import resolute.script_helpers
from resolute.script_helpers import *

sys.modules[__name__] = sys.modules["resolute.script_helpers"]
