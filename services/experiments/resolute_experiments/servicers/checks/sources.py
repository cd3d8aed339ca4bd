"""Bounds of the description of the git work tree that clients send."""

from __future__ import annotations

import re

from resolute.api.experiments.v1.experiments_service_pb2 import ExperimentSpec
from resolute_serving.validation import invalid

MAX_DIFF_BYTES = 256 * 1024
_MAX_BRANCH = 1000
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def source_content(spec: ExperimentSpec) -> bytes:
    """Returns the serialized source of a submission; empty for none.

    Raises:
        InvalidArgumentError: The commit is none, or something is too long.
    """
    if not spec.HasField("source"):
        return b""
    source = spec.source
    if not _COMMIT.fullmatch(source.git_commit):
        raise invalid("spec.source.git_commit", "spec.source.git_commit is not 40 or 64 hex digits")
    if len(source.git_branch) > _MAX_BRANCH:
        raise invalid(
            "spec.source.git_branch",
            f"spec.source.git_branch has {len(source.git_branch)} characters; it may have {_MAX_BRANCH}",
        )
    size = len(source.git_diff.encode())
    if size > MAX_DIFF_BYTES:
        raise invalid(
            "spec.source.git_diff",
            f"spec.source.git_diff has {size} bytes; it may have {MAX_DIFF_BYTES}: cut it, and set "
            "git_diff_truncated",
        )
    return source.SerializeToString()
