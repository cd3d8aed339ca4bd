"""Custom search methods."""

import sys

import resolute.searcher
from resolute.searcher import *

sys.modules[__name__] = sys.modules["resolute.searcher"]
