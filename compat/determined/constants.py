"""Numbers and places that scripts know."""

import sys

import resolute.constants
from resolute.constants import *

sys.modules[__name__] = sys.modules["resolute.constants"]
