"""The division of large files into parts for multipart uploads."""

from __future__ import annotations

MULTIPART_BYTES = 32 * 1024 * 1024
"""Files from this size on go in parts."""
_PART_BYTES = 8 * 1024 * 1024
_MAX_PARTS = 2000
_URL_BYTES = 2 * 1024 * 1024
"""Most bytes of the URLs of one file: they go in one message."""
_SIGNATURE_BYTES = 600


def part_size_of(size: int, *, key: str) -> int:
    """Bytes of each part but the last.

    Args:
        size: Bytes of the file.
        key: Its name in the bucket, which is in the URL of each part.
    """
    most = min(_MAX_PARTS, _URL_BYTES // (_SIGNATURE_BYTES + 3 * len(key.encode())))
    return max(_PART_BYTES, -(-size // most))
