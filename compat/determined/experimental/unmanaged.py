"""Refused: the module of older releases, with what to use instead."""

raise ImportError(
    "determined.experimental.unmanaged is not available: use determined.experimental.core_v2: "
    "core_v2.init(config=core_v2.Config(...)) begins a run outside of the cluster (docs/core-v2.md)"
)
