"""The messages of the contract and the stored ones have the same shape."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from resolute.api.searcher.v1 import event_pb2, search_spec_pb2
from resolute.storage.searcher.v1 import log_pb2, spec_pb2
from resolute_searcher.wire.contract import contract_name

PAIRS = [
    (log_pb2.LoggedEvent.DESCRIPTOR, event_pb2.LogEntry.DESCRIPTOR),
    (spec_pb2.SearchSpec.DESCRIPTOR, search_spec_pb2.SearchSpec.DESCRIPTOR),
]


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


@pytest.mark.parametrize(("stored", "contract"), PAIRS, ids=lambda message: message.name)
def test_nothing_is_lost_between_the_contract_and_the_database(
    stored: Descriptor, contract: Descriptor
) -> None:
    assert list(differences(stored, contract, set())) == []
