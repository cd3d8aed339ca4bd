"""What training scripts raise and catch."""

import sys

import resolute.trial_errors
from resolute.trial_errors import *

sys.modules[__name__] = sys.modules["resolute.trial_errors"]
