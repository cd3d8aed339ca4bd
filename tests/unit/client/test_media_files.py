"""Files that downloaded media become."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolute.client.objects.media import Media
from resolute.client.schema.records import MediaRecord
from resolute.contracts.spool.media_formats import MediaKind


def media(name: str) -> Media:
    record = MediaRecord(
        media_id=7,
        trial_uuid="trial",
        run=1,
        name=name,
        kind=MediaKind.TEXT,
        steps_completed=3,
        log_time=None,
        caption="",
        content_type="text/plain",
        size=5,
        digest="",
    )
    services: Any = SimpleNamespace(media=SimpleNamespace(read=lambda _trial, _media: b"hello"))
    return Media(services, record)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("samples", "samples"),
        ("../../etc", "_.._etc"),
        ("..", "unnamed"),
        ("a/b\\c:d", "a_b_c_d"),
        ("漢" * 500, "漢" * 33),
        ("x" * 500, "x" * 100),
    ],
)
def test_any_name_becomes_one_folder(name: str, folder: str, tmp_path: Path) -> None:
    file = media(name).download(tmp_path)
    assert file == tmp_path / folder / "3-7.txt"
    assert file.read_bytes() == b"hello"
