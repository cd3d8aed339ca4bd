"""Update masks and etags."""

from __future__ import annotations

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from resolute.errors import ConflictError, InvalidArgumentError
from resolute_serving.updates import check_etag, etag_of, update_paths

_ALLOWED = ("notes", "description")


def test_mask_names_what_is_updated() -> None:
    assert update_paths(FieldMask(paths=["notes", "notes"]), allowed=_ALLOWED) == {"notes"}


@pytest.mark.parametrize("paths", [[], ["owner"], ["notes", "*"]])
def test_mask_with_other_paths_is_refused_and_names_those_allowed(paths: list[str]) -> None:
    with pytest.raises(InvalidArgumentError, match="description, notes") as refusal:
        update_paths(FieldMask(paths=paths), allowed=_ALLOWED)
    assert [violation.field for violation in refusal.value.violations] == ["update_mask"]


def test_etag_of_the_current_revision_passes_and_an_older_one_does_not() -> None:
    check_etag(etag_of(7), revision=7, resource="project 3")
    check_etag("", revision=7, resource="project 3")
    with pytest.raises(ConflictError, match="project 3 was changed meanwhile"):
        check_etag(etag_of(6), revision=7, resource="project 3")
