"""A trial goes on at its checkpoint on another cluster, where every byte of it has arrived."""

from __future__ import annotations

import re
from pathlib import Path

from support.clusters.embedded import EmbeddedCluster, embedded

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


def test_a_trial_goes_on_elsewhere_and_both_sides_keep_their_history(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    options = ("--config", "searcher.max_length.epochs=1", "-f")
    said = cluster.det("e", "create", "const.yaml", ".", *options, cwd=DIGITS, timeout=120).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found
    with cluster.client() as client:
        (trial,) = client.get_experiment(int(found[1])).list_trials()
    number = str(trial.id)
    with embedded(tmp_path / "other", slots=1) as other:
        cluster.run("resolute", "config", "set-context", "other", "--home", str(other.home))
        first = cluster.json("promote", number, "--to", "other", "--config", "searcher.max_length.epochs=2")
        # Repeated, it finds all of it there.
        again = cluster.json("promote", number, "--to", "other", "--config", "searcher.max_length.epochs=2")
        assert again == first
        other.det("e", "wait", str(first["experiment"]), timeout=120)
        with cluster.client() as here, other.client() as there:
            original, copy = here.get_trial(int(number)), there.get_trial(first["trial"])
            for group in ("training", "validation"):
                expected = [(one.steps_completed, one.metrics) for one in original.iter_metrics(group)]
                assert [(one.steps_completed, one.metrics) for one in copy.iter_metrics(group)] == expected
            assert set(original.iter_logs()) <= set(copy.iter_logs())
            moved = there.get_checkpoint(first["checkpoint"])
            assert moved.metadata["promoted_from"]["trial"] == int(number)
            (kept,) = original.list_checkpoints()
            assert kept.metadata["promoted_to"]["trial"] == first["trial"]
            assert moved.resources == kept.resources
            (gone_on,) = there.get_experiment(first["experiment"]).list_trials()
            assert gone_on.hparams == original.hparams
        same = other.run("resolute", "config", "set-context", "self", "--home", str(other.home))
        assert same.returncode == 0
        refused = other.run("resolute", "promote", "1", "--to", "self", check=False)
        assert "on that cluster already" in refused.stderr
