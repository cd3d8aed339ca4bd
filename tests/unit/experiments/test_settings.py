"""What the experiments service accepts of its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_experiments.settings import ExperimentsSettings
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.service import Environment


def http_url(folder: Path, text: str) -> str:
    environment = Environment(
        database_url="", data_directory=folder, peers=Peers({}, token=str), cluster_id="c"
    )
    return ExperimentsSettings.from_environment({"RESOLUTE_ADVERTISED_URL": text}, environment).http_url


@pytest.mark.parametrize("url", ["", "https://page.example/resolute", "http://[::1]:8087", "http://node"])
def test_the_url_of_the_gateway_may_lack_a_port(tmp_path: Path, url: str) -> None:
    assert http_url(tmp_path, url) == url


@pytest.mark.parametrize(
    "url", ["node:8087", "ftp://node", "http://", "http://node:eight", "http://node:99999", "http://a@node"]
)
def test_an_url_that_trials_cannot_ask_is_refused_at_the_start(tmp_path: Path, url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_ADVERTISED_URL"):
        http_url(tmp_path, url)
