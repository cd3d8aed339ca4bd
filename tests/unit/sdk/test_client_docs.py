"""The page for authors of clients names every reason, with the status that it comes with."""

from __future__ import annotations

import re
from pathlib import Path

from resolute import errors
from resolute.api.common.v1 import error_pb2
from resolute.contracts.calls.client_version import CLIENT_HEADER
from resolute_serving.pagination import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from resolute_serving.server.client_versions import OLDEST_SDK

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "clients.md").read_text()


def test_every_reason_of_the_contract_is_explained() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([A-Z_]+) \|", PAGE, re.MULTILINE))
    names = error_pb2.ErrorReason.keys()
    declared = {name.removeprefix("ERROR_REASON_") for name in names}
    assert rows == {reason: errors.BY_REASON[reason].status for reason in declared - {"UNSPECIFIED"}}


def test_what_the_page_says_of_sizes_and_versions_is_what_the_code_does() -> None:
    assert f"0 for {DEFAULT_PAGE_SIZE}, and at most {MAX_PAGE_SIZE}" in PAGE
    assert f"(`RESOLUTE_OLDEST_CLIENT`, {OLDEST_SDK})" in PAGE
    assert f"`{CLIENT_HEADER}`" in PAGE
