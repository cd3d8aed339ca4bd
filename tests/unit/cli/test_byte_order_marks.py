"""Files that an editor of Windows wrote begin with a byte order mark, which is no part of what they say."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from resolute.cli.search.curves import read_curves
from resolute.client.connection.endpoint import find_endpoint


def marked(path: Path, text: str) -> Path:
    path.write_bytes(codecs.BOM_UTF8 + text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("curves.csv", "trial,length,metric\n1,1,0.5\n1,2,0.25\n"),
        ("curves.yaml", "- {lengths: [1, 2], metrics: [0.5, 0.25]}\n"),
    ],
)
def test_learning_curves(tmp_path: Path, name: str, text: str) -> None:
    plain = tmp_path / f"plain-{name}"
    plain.write_text(text)
    assert read_curves(marked(tmp_path / name, text)) == read_curves(plain)


def test_a_token(tmp_path: Path) -> None:
    file = marked(tmp_path / "token", "secret\n")
    environment = {"RESOLUTE_HOME": str(tmp_path), "RESOLUTE_TOKEN_FILE": str(file)}
    assert find_endpoint("127.0.0.1:1", environment=environment).token() == "secret"


def test_a_config_of_deepspeed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from resolute.pytorch.deepspeed.config import overwrite_deepspeed_config

    config = marked(tmp_path / "ds.json", '{"train_batch_size": 8}')
    assert overwrite_deepspeed_config(str(config), {"steps_per_print": 1}) == {
        "train_batch_size": 8,
        "steps_per_print": 1,
    }
