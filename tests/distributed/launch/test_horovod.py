"""Horovod as entrypoints reach it: by a Trial class, with words for horovodrun, and where it is absent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.distributed import DIGITS, Submit, environment_of
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

# Of 23 batches each; a validation at their end.
EPOCHS = "searcher.max_length.epochs=2"
LEGACY = "entrypoint=model_def:DigitsTrial"
NESTED = (
    "entrypoint=nice -n 5 python3 -m determined.launch.horovod --fusion-threshold-mb 1 --cycle-time-ms 2 -- "
    "--trial model_def:DigitsTrial"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home"), slots=2) as running:
        yield running


@pytest.fixture
def no_horovod(tmp_path: Path) -> str:
    """A setting for an interpreter that finds no Horovod: it stands for an environment without it."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['horovod'] = None\n")
    return f"environment.environment_variables=[OMP_NUM_THREADS=1, PYTHONPATH={tmp_path}]"


def command_lines(cluster: EmbeddedCluster) -> list[bytes]:
    """Of every process that came of a run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"RESOLUTE_RUN_DIR={cluster.home}/".encode() in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
    return found


def test_a_trial_class_on_two_slots_trains_by_horovod_with_no_secret_in_a_command_line(
    cluster: EmbeddedCluster, submit: Submit
) -> None:
    trial = submit(DIGITS, EPOCHS, LEGACY)
    environment = environment_of(trial.process_of(1))
    assert environment["USE_HOROVOD"] == "1"
    assert environment["HOROVOD_SIZE"] == "2"
    commands = command_lines(cluster)
    assert any(b"horovod.runner.launch" in command for command in commands)
    for secret in (environment["DET_SESSION_TOKEN"], environment["RESOLUTE_COLLECTIVE_KEY"]):
        assert not any(secret.encode() in command for command in commands)
    trial.wait_for(ExperimentState.COMPLETED)
    assert trial.reported("validation") == [46]
    assert trial.restarts == 0


def test_words_for_horovodrun_reach_it_through_a_nested_entrypoint(
    submit: Submit,
) -> None:
    trial = submit(DIGITS, EPOCHS, NESTED)
    rank = trial.process_of(1)
    environment = environment_of(rank)
    assert environment["HOROVOD_FUSION_THRESHOLD"] == str(1024 * 1024)
    assert float(environment["HOROVOD_CYCLE_TIME"]) == 2
    assert os.getpriority(os.PRIO_PROCESS, rank) == os.getpriority(os.PRIO_PROCESS, 0) + 5
    trial.wait_for(ExperimentState.COMPLETED)
    assert max(report.metrics["accuracy"] for report in trial.trial.iter_metrics("validation")) > 0.5


def test_a_trial_class_trains_by_torch_distributed_where_horovod_is_absent_and_says_so(
    submit: Submit, no_horovod: str
) -> None:
    trial = submit(DIGITS, EPOCHS, LEGACY, no_horovod)
    trial.wait_for(ExperimentState.COMPLETED)
    assert re.search(r"warning: Horovod is not installed, .* torch.distributed instead", trial.log())
    assert trial.reported("validation") == [46]


def test_who_asks_for_horovod_where_it_is_absent_is_told_what_to_do(submit: Submit, no_horovod: str) -> None:
    trial = submit(DIGITS, NESTED, no_horovod, "max_restarts=0")
    trial.wait_for(ExperimentState.ERROR)
    log = trial.log()
    assert "pip install horovod" in log
    assert "determined.launch.torch_distributed" in log
