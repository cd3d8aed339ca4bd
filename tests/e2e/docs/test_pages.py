"""What the pages for users show works: every command of each is run, in order, as it stands there."""

from __future__ import annotations

import getpass
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.engines.contract import EngineContract, TokenContract
from support.old_cluster.content import Content
from support.old_cluster.master import OldMaster, serving_old_master
from support.pages.commands import ROOT, blocks_of, run_script, script_of
from support.ports import free_port
from support.suite.sampling import Sample

pytestmark = pytest.mark.timeout(1000)
NEEDS_HTTP = pytest.mark.skipif(sys.hexversion < 0x030B0000, reason="HTTP needs Python 3.11")


def _searches(said: str, folder: Path) -> None:
    assert (folder / "examples/digits/search.png").stat().st_size > 10_000
    assert "drove experiment 2" in said
    listed = said.rpartition("+ resolute e list-trials 2")[2]
    assert len(re.findall(r"\bCOMPLETED\b", listed)) == 2


def _metrics_and_logs(said: str, folder: Path) -> None:
    digits = folder / "examples/digits"
    assert (digits / "reports.csv").read_text().splitlines()[0].startswith("trial")
    assert (digits / "loss.json").stat().st_size > 100
    lines = [json.loads(line) for line in (digits / "lines.jsonl").read_text().splitlines()]
    assert len(lines) == 2
    assert all(re.search(r"at step \d+", line["message"]) for line in lines)
    assert said.rpartition("+ resolute e list")[2].count("COMPLETED") == 2


def _checkpoints(said: str, folder: Path) -> None:
    assert list((folder / "examples/digits/fetched").iterdir())
    kept = said.rpartition("+ resolute c list 1")[2].partition("+ resolute m describe")[0]
    # The latest, and the pinned best, which may be the same.
    assert 1 <= len(re.findall(r"\bCOMPLETED\b", kept)) <= 2


def _from_determined(said: str, folder: Path) -> None:
    listed = said.rpartition("+ det experiment list")[2].partition("+ det trial describe")[0]
    assert "COMPLETED" in listed
    assert "validation" in said.rpartition("+ det trial describe 1")[2]


def _gateway(said: str, folder: Path) -> None:
    assert '"clusterId"' in said
    assert '"grpc_address"' in said


def _without_torch(said: str, folder: Path) -> None:
    assert "fetch the best checkpoint with" in said
    assert list((folder / "trees/downloads").rglob("model.joblib"))


def _best_model(said: str, folder: Path) -> None:
    for fetched in ("trial-1", "from-python", "released"):
        assert (folder / "best" / fetched / "state_dict.pth").exists()
    assert "grad_fn" in said.rpartition("+ python3 load.py")[2]


def _workstation(said: str, folder: Path) -> None:
    assert list((folder / "first/downloads").iterdir())
    assert said.count("fetch the best checkpoint with") == 2
    assert "best trial " in said
    assert "training with ['--epochs', '3']" in said.rpartition("+ resolute logs 3")[2]


@pytest.mark.sampled(2, group="pages that run long")
@pytest.mark.parametrize(
    ("page", "check"),
    [
        pytest.param("gateway", _gateway, marks=NEEDS_HTTP),
        ("workstation", _workstation),
        ("searches", _searches),
        ("metrics-and-logs", _metrics_and_logs),
        ("checkpoints", _checkpoints),
        ("from-determined", _from_determined),
        ("without-torch", _without_torch),
        ("best-model", _best_model),
    ],
)
def test_the_commands_of_a_page_run_from_beginning_to_end(
    page: str, check: Callable[[str, Path], None], tmp_path: Path
) -> None:
    # As `resolute compat install` does, but not for the environment of the tests.
    variables = {"PYTHONPATH": str(ROOT / "compat")}
    script = script_of(f"docs/{page}.md")
    check(run_script(script, tmp_path, timeout=900, variables=variables), tmp_path)


def test_the_cells_of_the_page_about_notebooks_run_in_one_process(tmp_path: Path) -> None:
    cells = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs/notebook.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "cells.py").write_text("\n".join(cells))
    script = f"{script_of('docs/notebook.md')}\npython3 cells.py\nresolute experiment list\n"
    said = run_script(script, tmp_path, timeout=900)
    assert "4 trials, 80 reports" in said
    assert (tmp_path / "sweep.png").stat().st_size > 5_000
    assert said.rpartition("+ resolute experiment list")[2].count("COMPLETED") == 2


def test_the_page_of_secrets_sets_them(tmp_path: Path) -> None:
    script = f"echo a private key > deploy-key.pem\nresolute up --detach\n{script_of('docs/secrets.md')}"
    listed = run_script(script, tmp_path, timeout=900).rpartition("+ resolute secret list")[2]
    assert re.search(r"\bhub\b", listed)
    assert "deploy-key" not in listed


@pytest.mark.sampled(2, group="pages that run long")
@NEEDS_HTTP
def test_the_page_for_builders_makes_what_it_shows(tmp_path: Path) -> None:
    installed = str(tmp_path / "installed")
    # Not into the environment of the tests, whose searches would all know the method.
    variables = {"PIP_TARGET": installed, "PYTHONPATH": installed, "PIP_NO_BUILD_ISOLATION": "0"}
    said = run_script(script_of("docs/extending.md"), tmp_path, timeout=900, variables=variables)
    assert said.count("4 trials, 12 units in total") == 1
    assert "best trial " in said.rpartition("+ resolute experiment create plugin.yaml -f")[2]
    assert "\n1 steps\n" in said
    assert re.search(r"\] 10 steps$", said, re.MULTILINE)


def test_the_page_for_moving_brings_a_whole_cluster(tmp_path: Path) -> None:
    content = Content(directory=tmp_path / "old")
    content.write_files()
    with serving_old_master(OldMaster(content)) as address:
        script = script_of("docs/moving-a-cluster.md")
        said = run_script(script, tmp_path, timeout=900, variables={"OLD": address})
    assert "experiments: 6 there" in said
    assert "experiments: 6 new" in said
    assert "trial 5 of cluster" in said.rpartition("+ resolute import find trial 5")[2]
    assert len((tmp_path / "moved.csv").read_text().splitlines()) == 1 + 6 + 12
    assert "found ['code', 'weights.json']" in said
    assert "36 inherited checkpoints are" in said.rpartition("+ resolute take-over")[2]


def test_the_page_for_engines_makes_one_that_keeps_the_contract(tmp_path: Path, sample: Sample) -> None:
    installed = str(tmp_path / "installed")
    variables = {"PIP_TARGET": installed, "PYTHONPATH": installed, "PIP_NO_BUILD_ISOLATION": "0"}
    script = script_of("docs/write-an-engine.md")
    # The clone is this repository, and its pytest is here.
    installs = "pip install pytest\n"
    assert script.count(installs) == 1
    script = script.replace(installs, f"ln -s {ROOT} resolute\n")
    contracts = (EngineContract, TokenContract)
    cases = [name for each in contracts for name in vars(each) if name.startswith("test_")]
    chosen = [f"test_contract.py::TestSubprocess::{name}" for name in sample.of(cases, 4)]
    whole = "pytest test_contract.py\n"
    assert script.count(whole) == 1
    script = script.replace(whole, f"pytest {' '.join(chosen)}\n")
    said = run_script(script, tmp_path, timeout=900, variables=variables)
    assert "trained by a subprocess" in said
    assert re.search(rf"= {len(chosen)} passed in", said)


@pytest.mark.sampled(2, group="pages that run long")
@NEEDS_HTTP
def test_the_page_for_a_shared_server_serves_another_machine(tmp_path: Path) -> None:
    script = script_of("docs/cluster.md")
    for port in ("8443", "8080", "9464"):
        script = script.replace(port, str(free_port()))
    # There is one machine: another home is the other one, whose user knows neither certificate nor token.
    script = script.replace("machine.example", "localhost")
    login = "resolute -m https://localhost"
    assert script.count(login) == 1
    script = script.replace(login, f"OPERATOR=$RESOLUTE_HOME; export RESOLUTE_HOME=$PWD/other\n{login}")
    watching = "resolute down\nresolute up --detach --host"
    assert script.count(watching) == 1
    back = "cd ..; unset RESOLUTE_MASTER; export RESOLUTE_HOME=$OPERATOR"
    script = script.replace(watching, f"{back}\n{watching}")
    answers = {"New password of ada: ": "navy cobol", "Repeat for confirmation: ": "navy cobol"}
    answers |= {"[y/N]: ": "y", "Password of ada: ": "navy cobol"}
    said = run_script(script, tmp_path, timeout=900, answers=answers)
    assert re.search(r"logged in at localhost:\d+ as ada", said)
    assert "fetch the best checkpoint with" in said
    assert re.search(r"^resolute_up\S* 1\.0$", said, re.MULTILINE)
    assert (tmp_path / "restored/cluster.json").is_file()
    _verify_unit(tmp_path / "first/resolute-up.service")


def _verify_unit(unit: Path) -> None:
    """No systemd runs here: it reads the unit, with the program and the user that there are."""
    if shutil.which("systemd-analyze") is None:
        return
    program = Path(sys.executable).parent / "resolute"
    text = unit.read_text().replace("/home/resolute/resolute/.venv/bin/resolute", str(program))
    unit.write_text(text.replace("User=resolute", f"User={getpass.getuser()}"))
    read = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize("page", ["workstation", "extending", "cluster"])
def test_only_the_installation_is_left_out_of_a_way_in(page: str) -> None:
    left_out = [block.code for block in blocks_of(f"docs/{page}.md") if block.reason]
    assert all("pip install '" in code for code in left_out)
