"""Settings of the engine of this machine and of its pool: there are none."""

from __future__ import annotations

from resolute.contracts.documents.section import Section


class LocalEngineOptions(Section):
    """Options of an engine of type ``local``: none."""


class LocalPoolOptions(Section):
    """Options of its pool: none."""
