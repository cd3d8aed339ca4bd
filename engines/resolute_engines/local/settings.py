"""What the settings of resource pools say of the engine of this machine, and of its pool: nothing."""

from __future__ import annotations

from resolute.contracts.documents.section import Section


class LocalEngineOptions(Section):
    """Options of an engine of type ``local``: none."""


class LocalPoolOptions(Section):
    """Options of its pool: none."""
