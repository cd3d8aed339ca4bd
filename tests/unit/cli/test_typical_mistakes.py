"""Typical mistakes, with what the message of each says; none of them ends as if all were well."""

from __future__ import annotations

import copy
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from resolute.cli.failures import explain
from resolute.cli.main import run
from resolute.contracts.documents.faults import ConfigError
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config

COMMAND_LINES = {
    "experiment list": "`resolute up` starts one on this machine; -m HOST:PORT names another",
    "experimnt list": "There is no command 'experimnt'. Did you mean experiment",
    "trial lst": "There is no command 'lst'. Did you mean list?",
    "compare 1": "There is no `resolute compare`: `resolute experiment compare` compares trials",
    "trial compare 1 2": "There is no `resolute trial compare`: `resolute experiment compare` compares",
    "submit config.yaml": "`resolute experiment create` submits an experiment",
    "notebook start": "`resolute notebook`: start it by `resolute command run COMMAND`, such as jupyter",
    "sweep": "a config with a searcher is a sweep: `resolute experiment create`",
    "squeue": "`resolute job list` lists the queue",
    "stop": "`resolute experiment cancel` ends an experiment, `resolute down` the cluster",
    "logs": "Missing argument 'EXPERIMENT_ID'. `resolute experiment list` lists what there is",
    "e create": "Missing argument 'CONFIG'",
    "e create nothere.yaml .": "cannot read the config nothere.yaml: No such file or directory; check",
    "e create bad.yaml .": "a bracket, a brace or a quote before it is not closed",
    "e create tabs.yaml .": "cannot start any token; indent with spaces, not with tabs",
    "e create colon.yaml .": "in it into quotes, or begin the fields of a map in one column",
    "e create config.yaml . --config lr": "write --config FIELD.BELOW=VALUE, such as hyperparameters.lr=0.1",
    "e li": "'li' is short for several commands: list, list-trials, list-checkpoints",
    "e list --jsn": "No such option '--jsn'. (Did you mean one of: '--csv', '--json'?)",
    "e list -m localhost:8080": "-m stands before the command: `resolute -m HOST:PORT experiment list`",
    "e list --user ada": "--user stands before the command: `resolute --user NAME experiment list`",
    "-m nowhere:xx e list": "'nowhere:xx' is not an address",
    "-m ftp://localhost:1 e list": "is not an address: write HOST:PORT, http://… or https://…",
    "-m https:// up": "`resolute up` is about the cluster of this machine",
    "-m localhost:8080 stat": "`resolute status` is about the cluster of this machine",
    "-m 127.0.0.1:1 e list": "nothing listens there); check that it is running and that the address",
    "e pause": "Missing argument 'ID[,ID...]'. `resolute experiment list` lists what there is",
    "e pause abc": "'abc' is not the number or UUID of an experiment; `resolute experiment list`",
    "checkpoint download abc": "'abc' is not the UUID of a checkpoint; `resolute checkpoint list` lists them",
    "trial export 1 --output x": "x must end with .csv or .parquet",
    "up --slots gpu": "'gpu' is not a number; without --slots they are the GPUs, or else the cores",
    "e set priority 1 high": "a whole number is expected there",
    "e set weight 1 heavy": "a number is expected there",
    "up --slots 0": "0 is not in the range x>=1",
    "up --prot 8080": "Did you mean one of: '--host', '--port'",
    "init tensorflow x": "'tensorflow' is not one of 'pytorch', 'lightning', 'hf', 'keras', 'core'",
    "run": "Missing argument 'SCRIPT'",
    "run config.yaml": "config.yaml is a config: `resolute experiment create config.yaml .` submits it",
    "e resume 1": "There is no command 'resume'. Did you mean activate or continue?",
    "e stop 1": "There is no command 'stop'. Did you mean cancel or kill?",
    "secret rm x": "There is no command 'rm'. Did you mean delete?",
    "w show vision": "There is no command 'show'. Did you mean describe or list?",
    "trial 5": "There is no command '5'. A command comes before a number: `resolute trial describe 5`",
    "explain 5": "A command comes before a number: `resolute explain trial 5`",
    "run nothere.py": "File 'nothere.py' does not exist",
    "config set srver x": "'srver' is not one of 'server', 'user', 'output'",
    "config set server https://": "'https://' names no host; write HOST:PORT",
    "config set server ftp://host": "is not an address: write HOST:PORT",
    "config set output xml": "output: found 'xml'; expected one of table, json, csv",
    "search simulate nothere.yaml": "cannot read the config nothere.yaml",
    "open": "`resolute up` starts one on this machine; -m HOST:PORT names another",
    "completion tcsh": "'tcsh' is not one of 'bash', 'fish', 'zsh'",
    "e create .": "cannot read the config .: Is a directory; the config comes before the directory",
    "e create latin.yaml .": "is not text in UTF-8: invalid start byte at byte 8; save it as UTF-8",
    "-f e create config.yaml .": "No such option '-f'. the options of a command come after it",
    "e create config.yaml my code": "a path with spaces is written in quotes: 'my code'",
    f"e create config.yaml code {'x' * 300}": "unexpected extra argument",
    "login --sso --password-stdin": "--sso takes no NAME and no password: the provider knows both",
}
CONFIG = """
name: typical
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_trials: 4, max_length: {batches: 10}}
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
resources: {slots_per_trial: 1}
"""
FIELDS = {
    "entrypont: x": "entrypont: unknown field; did you mean 'entrypoint'?",
    "entrypoint: 5": "entrypoint: found 5; expected a command as text",
    "name: [a]": "name: found a list of 1; expected text",
    "hyperparameter: {lr: 1}": "hyperparameter: unknown field; did you mean 'hyperparameters'?",
    "max_restart: 3": "max_restart: unknown field; did you mean 'max_restarts'?",
    "max_restarts: -1": "max_restarts: found -1; expected 0 or more",
    "searcher: 5": "searcher: found 5; expected a map whose name is one of single",
    "searcher.name: rndom": 'searcher.name: found "rndom"; expected one of single, random',
    "searcher.metrc: loss": "searcher.metrc: unknown field; did you mean 'metric'?",
    "searcher.metric: 5": "searcher.metric: found 5; expected text",
    "searcher.max_trails: 4": "searcher.max_trails: unknown field; did you mean 'max_trials'?",
    "searcher.max_trials: many": 'searcher.max_trials: found "many"; expected an integer',
    "searcher.max_trials: 0": "searcher.max_trials: found 0; expected 1 or more",
    "searcher.max_length: ten": 'searcher.max_length: found "ten"; expected exactly one of {batches: N}',
    "searcher.max_length: {epoch: 3}": "found a map with epoch; expected exactly one of {batches: N}",
    "searcher.smaller_is_better: maybe": 'found "maybe"; expected true or false',
    "searcher: {name: grid, metric: loss, max_length: 3}": "lr.count: missing; expected the number of points",
    "hyperparameters.lr.type: logg": 'found "logg"; expected one of const, int, double, log, categorical',
    "hyperparameters.lr.minval: 1": "lr.maxval: found -1; expected more than minval (1)",
    "hyperparameters.lr: {minval: 0, maxval: 1}": "lr.type: missing; expected int, double or log",
    "hyperparameters.lr: {type: double, minval: 1}": "lr.maxval: missing; expected the largest value",
    "hyperparameters.lr: {type: categorical, vals: []}": "expected a list that is not empty",
    "hyperparameters.lr: {type: int, minval: 0.5, maxval: 2}": "expected an integer, because type is int",
    "resources.slot_per_trial: 2": "slot_per_trial: unknown field; did you mean 'slots_per_trial'?",
    "resources.slots_per_trial: -1": "resources.slots_per_trial: found -1; expected 0 or more",
    "resources.priority: high": 'resources.priority: found "high"; expected an integer from 1, the',
    "environment: {environment_variables: 5}": 'found 5; expected a list of "NAME=value"',
    "checkpoint_storage: {type: s4}": 'found "s4"; expected one of shared_fs, directory, s3, gcs, azure',
    "checkpoint_storage: {type: s3}": "checkpoint_storage.bucket: missing; expected the name of the bucket",
    "checkpoint_policy: always": "found \"always\"; expected one of 'best', 'all' or 'none'",
    "min_validation_period: {epoch: 1}": "found a map with epoch; expected exactly one of {batches: N}",
    "bind_mounts: [{host_path: a}]": 'bind_mounts[0].host_path: found "a"; expected an absolute path',
    "profiling: yes please": 'profiling: found "yes please"; expected a map with fields such as enabled',
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a config, and a home in which no cluster was ever started."""
    for name in ("RESOLUTE_MASTER", "DET_MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "bad.yaml").write_text("entrypoint: [\n")
    (tmp_path / "tabs.yaml").write_text("searcher:\n\tname: single\n")
    (tmp_path / "latin.yaml").write_bytes("name: größe\n".encode("latin-1"))
    (tmp_path / "my code").mkdir()
    (tmp_path / "colon.yaml").write_text("name: mine: first\n")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_mistaken_command_line_is_told_what_to_do(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split(), program="resolute") != 0
    said = " ".join(capsys.readouterr().err.split())
    assert COMMAND_LINES[line] in said


@pytest.mark.parametrize("field", FIELDS)
def test_a_mistaken_field_of_a_config_is_refused_with_what_is_expected(field: str) -> None:
    content = copy.deepcopy(yaml.safe_load(CONFIG))
    place, _, value = field.partition(": ")
    *above, last = place.split(".")
    within: dict[str, Any] = content
    for name in above:
        within = within[name]
    within[last] = yaml.safe_load(value)
    storage = {"type": "directory", "container_path": "/checkpoints"}
    with pytest.raises(ConfigError) as refused:
        parse_config(content, layers=[Layer("cluster", {"checkpoint_storage": storage})])
    assert FIELDS[field] in str(refused.value)


def test_a_home_that_cannot_be_written_names_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RESOLUTE_HOME", "/proc/home")
    assert run(["config", "set", "output", "json"], program="resolute") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: cannot write /proc/home/settings.json: ")
    assert "let RESOLUTE_HOME name a directory that you may write" in said
    # A file in the place of a home.
    monkeypatch.setenv("RESOLUTE_HOME", __file__)
    assert run(["config", "list"], program="resolute") == 1
    assert "is not a directory; let RESOLUTE_HOME name one" in capsys.readouterr().err


def test_a_setting_that_finds_no_room_is_not_about_permission(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, content: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("resolute.client.preferences.write_atomically", full)
    assert run(["config", "set", "output", "json"], program="resolute") == 1
    said = f"error: cannot write {here}/home/settings.json: No space left on device; "
    assert capsys.readouterr().err == f"{said}free some space there, then repeat the command\n"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("-m 127.0.0.1:1 user login ada", "--password-stdin reads it from standard input"),
        ("-m 127.0.0.1:1 user change-password ada", "--password-stdin reads it from standard input"),
        ("-m 127.0.0.1:1 user login", "Missing argument 'NAME'"),
        ("import determined http://127.0.0.1:1", "--password-file names a file with it"),
    ],
)
def test_without_a_terminal_no_password_is_asked_for(line: str, wanted: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from resolute.cli.main import main; main()", *line.split()],
        input="a password",
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert done.returncode == 2
    assert wanted in done.stderr
    assert "arning" not in done.stderr


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("line", ["--version", "--help", "help errors", "config list", "completion bash"])
def test_output_that_finds_no_room_is_one_sentence(line: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from resolute.cli.main import main; main()", *line.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    said = "error: cannot write where the output goes: No space left on device; "
    assert done.stderr == f"{said}free some space there, then repeat the command\n"


def test_a_full_disk_is_named_though_the_failure_of_a_write_names_no_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    remedy = "free some space there, then repeat the command"
    assert (
        explain(failure, None) == f"error: cannot write where the output goes: {failure.strerror}; {remedy}"
    )
    usage = shutil.disk_usage(here)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=512))
    said = f"error: the disk that holds {here} is full: 512 bytes are free and 65536 needed; {remedy}"
    assert explain(failure, None) == said
    failure.filename = "/data/reports.csv"
    assert explain(failure, None) == f"error: cannot write /data/reports.csv: {failure.strerror}; {remedy}"
