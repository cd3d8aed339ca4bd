"""The messages of the contract and the stored ones have the same shape, and old rows are read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from resolute.api.searcher.v1 import event_pb2, search_spec_pb2
from resolute.storage.searcher.v1 import log_pb2
from resolute_searcher.spec.adaptive import AdaptiveMode
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    RandomSpec,
)
from resolute_searcher.spec.space import LogRange
from resolute_searcher.wire.contract import contract_name
from resolute_searcher.wire.spec import spec_from

COMMON = (
    "0a046c6f73731001180722270a250a026c72121f221d0900000000000010c011000000000000f0bf1900000000000024402003"
)
STORED = [
    ("0a016d6200", GridSpec(max_length=None, max_concurrent_trials=0)),
    (f"{COMMON}3201635a06080310041802", RandomSpec(max_length=3, max_trials=4, max_concurrent_trials=2)),
    (
        f"{COMMON}2a07626174636865733201636a15080210081809210000000000001040280530013801",
        AsyncHalvingSpec(
            num_rungs=2, max_length=8, max_trials=9, max_concurrent_trials=5, stop_once=True, time_driven=True
        ),
    ),
    (
        f"{COMMON}3201637219080810091900000000000010402003280530023a0202034001",
        AdaptiveAshaSpec(
            max_length=8,
            max_trials=9,
            max_rungs=3,
            max_concurrent_trials=5,
            mode=AdaptiveMode.STANDARD,
            bracket_rungs=(2, 3),
            stop_once=True,
        ),
    ),
]
"""Specs as versions stored them that had messages of their own for this: absent numbers were zeros."""


def differences(stored: Descriptor, contract: Descriptor, seen: set[str]) -> Iterator[str]:
    """Names what one of two messages has and the other has not."""
    if stored is contract or stored.full_name in seen:
        return
    seen.add(stored.full_name)
    ours = {contract_name(stored.name, field.name): field for field in stored.fields}
    theirs = {field.name: field for field in contract.fields}
    for name in sorted(ours.keys() ^ theirs.keys()):
        yield f"{stored.full_name}.{name}"
    for name in ours.keys() & theirs.keys():
        one, other = ours[name], theirs[name]
        if one.type != other.type:
            yield f"{stored.full_name}.{name}"
        elif one.message_type is not None and other.message_type is not None:
            yield from differences(one.message_type, other.message_type, seen)
        elif one.enum_type is not None and other.enum_type is not None:
            yield from enum_differences(one.enum_type, other.enum_type)


def enum_differences(stored: EnumDescriptor, contract: EnumDescriptor) -> Iterator[str]:
    if {(v.name, v.number) for v in stored.values} != {(v.name, v.number) for v in contract.values}:
        yield stored.full_name


def test_nothing_is_lost_between_the_contract_and_the_database() -> None:
    assert list(differences(log_pb2.LoggedEvent.DESCRIPTOR, event_pb2.LogEntry.DESCRIPTOR, set())) == []


@pytest.mark.parametrize(("stored", "method"), STORED, ids=lambda given: type(given).__name__)
def test_a_spec_that_was_stored_by_messages_of_its_own_is_read(stored: str, method: MethodSpec) -> None:
    message = search_spec_pb2.SearchSpec.FromString(bytes.fromhex(stored))
    assert message.SerializeToString(deterministic=True).hex() == stored
    spec = spec_from(message)
    assert spec.method == method
    if stored.startswith(COMMON):
        assert (spec.metric, spec.smaller_is_better, spec.seed) == ("loss", True, 7)
        assert spec.source_checkpoint_id == "c"
        assert spec.time_metric == ("batches" if message.async_halving.time_driven else None)
        assert spec.space.hyperparameters == {"lr": LogRange(-4, -1, 10.0, 3)}
