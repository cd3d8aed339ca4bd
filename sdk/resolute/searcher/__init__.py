"""Custom search methods: your own Python program decides which trials run and for how long.

Subclass `SearchMethod`, then drive an experiment whose config says ``searcher: {name: custom, ...}`` with a
`LocalSearchRunner` on any machine, or with a `RemoteSearchRunner` inside of an experiment.
"""

from resolute.searcher.local import LocalSearchRunner
from resolute.searcher.method import SearcherState, SearchMethod
from resolute.searcher.operations import (
    Close,
    Create,
    ExitedReason,
    Operation,
    Progress,
    Shutdown,
    ValidateAfter,
)
from resolute.searcher.remote import RemoteSearchRunner
from resolute.searcher.runner import SearchRunner

__all__ = [
    "Close",
    "Create",
    "ExitedReason",
    "LocalSearchRunner",
    "Operation",
    "Progress",
    "RemoteSearchRunner",
    "SearchMethod",
    "SearchRunner",
    "SearcherState",
    "Shutdown",
    "ValidateAfter",
]
