"""Horovod, loaded once a script has said for which framework."""

import sys

import resolute.horovod
from resolute.horovod import *

sys.modules[__name__] = sys.modules["resolute.horovod"]
