"""The refusal of a valid config that the cluster does not accept."""

from __future__ import annotations

from resolute.errors import InvalidConfigError, Violation


def refused_config(*faults: Violation) -> InvalidConfigError:
    """The error that lists what is wrong with a config; one fault at least."""
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    listed = "".join(f"\n  {fault}" for fault in faults)
    return InvalidConfigError(f"the experiment config has {count}:{listed}", violations=faults)
