"""The table of docs/gateway.md that maps Determined's REST calls: each line of it is run by bash and curl."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.services.gateway import need_http

need_http()

PAGE = (Path(__file__).parents[2] / "docs/gateway.md").read_text()
CALLS = re.findall(r"^\| `(?:GET|POST) /api/v1/[^`]*` \| `(call [^`]+)` \|$", PAGE, re.MULTILINE)
DEFINITION = re.search(r"^(URL=.*?^})$", PAGE, re.MULTILINE | re.DOTALL)
CONFIG = """
name: mapped
entrypoint: sleep 600
searcher: {name: single, metric: loss}
"""


@pytest.fixture(scope="module")
def with_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster that serves HTTP, with one experiment that runs."""
    folder = tmp_path_factory.mktemp("mapped")
    (folder / "c.yaml").write_text(CONFIG)
    (folder / "code").mkdir()
    with embedded(folder / "h", slots=1, RESOLUTE_NO_HTTP="") as cluster:
        cluster.det("e", "create", "c.yaml", "code", cwd=folder)
        yield cluster


def test_the_table_is_found() -> None:
    assert len(CALLS) == 12


@pytest.mark.parametrize("call", CALLS)
def test_each_call_is_answered(with_http: EmbeddedCluster, call: str) -> None:
    assert DEFINITION is not None
    variables = with_http.variables()
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    told = subprocess.run(
        ["bash", "-c", f"set -e\n{DEFINITION[1]}\n{call}"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.startswith("{")
