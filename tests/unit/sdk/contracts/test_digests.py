from __future__ import annotations

import hashlib

import pytest

from resolute.contracts.files.digests import PREFERRED, format_digest, hasher_for, new_hash
from resolute.errors import FailedPreconditionError


def test_older_digests_are_computed_as_they_were() -> None:
    summed = hasher_for("sha256:00")
    assert summed is not None
    summed.update(b"weights")
    assert format_digest(summed, "sha256") == f"sha256:{hashlib.sha256(b'weights').hexdigest()}"


def test_new_digests_name_their_algorithm() -> None:
    whole, pieces = new_hash(), new_hash()
    whole.update(b"weights")
    pieces.update(b"wei")
    pieces.update(memoryview(b"ghts"))
    assert format_digest(whole) == format_digest(pieces)
    assert format_digest(whole).startswith(f"{PREFERRED}:")


def test_blake3_is_the_published_function() -> None:
    empty = new_hash("blake3").hexdigest()
    assert empty == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


def test_what_nobody_knows_is_refused_and_nothing_is_no_digest() -> None:
    with pytest.raises(FailedPreconditionError, match="'xxh3' are unknown here"):
        hasher_for("xxh3:00")
    assert hasher_for("") is None
