"""How urgent experiments may be: from 1, the most urgent, on."""

from __future__ import annotations

DEFAULT_PRIORITY = 42
"""Priority of experiments that name none."""
LEAST_PRIORITY = 99
"""The least urgent one."""
