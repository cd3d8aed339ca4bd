"""The Core API for scripts that run anywhere."""

from typing import Any

import resolute.core_v2
from determined._older_names import attribute
from resolute.core_v2 import *


def __getattr__(name: str) -> Any:
    if name in {"info", "experimental", "alert"}:  # of the trial that runs now
        return getattr(resolute.core_v2, name)
    return attribute(__name__, name)
