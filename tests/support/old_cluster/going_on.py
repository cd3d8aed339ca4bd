"""A new experiment that begins with the weights of a checkpoint of the old cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from resolute.client import Client

_SCRIPT = """
import json
import resolute

info = resolute.get_cluster_info()
with resolute.core.init() as context:
    with context.checkpoint.restore_path(info.latest_checkpoint) as path:
        weights = json.loads((path / "weights.json").read_text())
    print("weights:", json.dumps(weights))
    for op in context.searcher.operations():
        context.train.report_validation_metrics(op.length, {"loss": weights["steps"]})
        op.report_completed(weights["steps"])
"""


def weights_after(client: Client, checkpoint_id: str, directory: Path) -> Any:
    """Trains on from a checkpoint; returns the weights that the script found in it.

    Args:
        client: The cluster.
        checkpoint_id: The checkpoint.
        directory: Takes the code.
    """
    config = {
        "name": "goes on",
        "entrypoint": "python3 train.py",
        "searcher": {
            "name": "single",
            "metric": "loss",
            "max_length": {"batches": 1},
            "source_checkpoint_uuid": checkpoint_id,
        },
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "train.py").write_text(_SCRIPT)
    experiment = client.create_experiment(config, directory)
    state = experiment.wait()
    (trial,) = experiment.list_trials()
    record = client.services.trials.get(trial.id)
    lines = [line.message for line in client.services.logs.list(record.uuid)]
    assert state.name == "COMPLETED", "\n".join(lines)
    (weights,) = (line.partition(": ")[2] for line in lines if line.startswith("weights: "))
    return json.loads(weights)
