"""Training in PyTorch."""

import importlib
import sys

import resolute.pytorch
from resolute.pytorch import *

sys.modules[__name__] = sys.modules["resolute.pytorch"]
for _name in ("deepspeed", "experimental", "samplers"):
    # The package in this one's place would have its modules imported a second time under this one's name.
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"resolute.pytorch.{_name}")
