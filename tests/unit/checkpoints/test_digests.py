from __future__ import annotations

import hashlib
import io

import pytest

from resolute.errors import DataLossError, InvalidArgumentError, UnimplementedError
from resolute_checkpoints.blobs.digests import check_digest, verify

CONTENT = b"weights" * 400_000


@pytest.mark.parametrize("algorithm", ["md5", "sha256", "blake2b"])
def test_bytes_are_compared_with_their_digest(algorithm: str) -> None:
    digest = f"{algorithm}:{hashlib.new(algorithm, CONTENT).hexdigest()}"
    verify(io.BytesIO(CONTENT), check_digest(digest, field="digest"), name="model.pt")
    flipped = bytearray(CONTENT)
    flipped[1_234_567] ^= 1
    with pytest.raises(DataLossError, match=r"model\.pt is damaged"):
        verify(io.BytesIO(flipped), digest, name="model.pt")


def test_an_algorithm_of_another_version_is_kept_and_not_pretended_to_be_verified() -> None:
    digest = check_digest("xxh3:" + "0" * 16, field="digest")
    with pytest.raises(UnimplementedError, match="'xxh3'"):
        verify(io.BytesIO(), digest, name="model.pt")


@pytest.mark.parametrize(
    "digest", ["", "sha256", "sha256:", "sha256:xyz", "sha256:" + "A" * 64, ":" + "0" * 64]
)
def test_what_is_no_digest_is_refused(digest: str) -> None:
    with pytest.raises(InvalidArgumentError, match="algorithm:hex"):
        check_digest(digest, field="digest")
