"""Settings of the local engine and of its pool, which have no options."""

from __future__ import annotations

from resolute.contracts.documents.section import Section


class LocalEngineOptions(Section):
    """The options of an engine of type ``local``: none."""


class LocalPoolOptions(Section):
    """The options of a pool of the local engine: none."""
