"""The archive with all that is known of a trial."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster


def test_a_support_bundle_holds_what_is_known_of_a_trial(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    trial = cluster.state.add_trial(cluster.state.add_experiment(), hparams={"lr": 0.5})
    outcome = resolute("t", "support-bundle", str(trial.number), "-o", str(tmp_path / "out"))
    assert outcome.code == 0, outcome.err
    with tarfile.open(outcome.out.strip()) as archive:
        names = {Path(name).name for name in archive.getnames()}
        described = archive.extractfile(f"trial_{trial.number}_support_bundle/trial.json")
        assert described is not None
        assert json.load(described)["hparams"] == {"lr": 0.5}
    assert names == {
        "trial.json",
        "experiment.json",
        "metrics.json",
        "checkpoints.json",
        "cluster.json",
        "log.txt",
    }
    assert json.loads(resolute("trial", "list", "1", "--json").out)[0]["id"] == trial.number
