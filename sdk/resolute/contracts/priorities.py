"""The range of experiment priorities; 1 is the most urgent."""

from __future__ import annotations

DEFAULT_PRIORITY = 42
"""Priority of experiments that name none."""
LEAST_PRIORITY = 99
"""The least urgent one."""
