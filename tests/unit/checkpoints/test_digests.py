from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.digests import check_digest


def test_a_digest_of_another_version_is_kept() -> None:
    assert check_digest("xxh3:" + "0" * 16, field="digest") == "xxh3:" + "0" * 16


@pytest.mark.parametrize(
    "digest", ["", "sha256", "sha256:", "sha256:xyz", "sha256:" + "A" * 64, ":" + "0" * 64]
)
def test_what_is_no_digest_is_refused(digest: str) -> None:
    with pytest.raises(InvalidArgumentError, match="algorithm:hex"):
        check_digest(digest, field="digest")
