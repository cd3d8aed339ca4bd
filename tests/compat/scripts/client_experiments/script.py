"""The Python SDK as scripts use it: create, follow, describe, fetch."""

import os
import tempfile

from determined.experimental import client
from determined.experimental.client import Determined, ExperimentState, OrderBy, TrialSortBy

CODE = """
import determined as det
with det.core.init() as core_context:
    for op in core_context.searcher.operations():
        for step in range(1, op.length + 1):
            core_context.train.report_training_metrics(step, {"loss": 1 / step})
        with core_context.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "model").write_text("m")
        core_context.train.report_validation_metrics(op.length, {"loss": 1 / op.length})
        print("trained")
        op.report_completed(1 / op.length)
"""


def main():
    config = {
        "name": "made-by-client",
        "entrypoint": "python3 code.py",
        "searcher": {"name": "random", "max_trials": 2, "metric": "loss", "max_length": 3},
        "hyperparameters": {"lr": {"type": "double", "minval": 0.1, "maxval": 0.2}},
        "max_restarts": 0,
    }
    with tempfile.TemporaryDirectory() as model_dir:
        with open(os.path.join(model_dir, "code.py"), "w") as file:
            file.write(CODE)
        experiment = client.create_experiment(config=config, model_dir=model_dir)
    experiment.add_label("tried")
    experiment.set_description("by the SDK")
    assert experiment.await_first_trial().experiment_id == experiment.id
    assert experiment.wait(interval=0.2) == ExperimentState.COMPLETED
    experiment.reload()
    assert set(experiment.labels) == {"tried"} and experiment.description == "by the SDK"
    trials = experiment.list_trials(sort_by=TrialSortBy.ID, order_by=OrderBy.DESC)
    assert [t.id for t in trials] == sorted((t.id for t in trials), reverse=True) and len(trials) == 2
    assert any("trained" in line for line in trials[0].logs())
    (validation,) = trials[0].iter_metrics("validation")
    assert validation.metrics["loss"] == 1 / 3 and validation.steps_completed == 3
    best = experiment.list_checkpoints(sort_by="loss", order_by=OrderBy.ASC, max_results=1)[0]
    path = best.download(tempfile.mkdtemp())
    assert open(os.path.join(path, "model")).read() == "m"
    best.add_metadata({"grade": "A"})
    assert client.get_checkpoint(best.uuid).metadata["grade"] == "A"
    archive = experiment.download_code(tempfile.mkdtemp())
    assert archive.endswith(f"exp-{experiment.id}_model_def.tar.gz")
    assert experiment.id in [e.id for e in Determined().list_experiments(labels=["tried"])]
    rows = list(client.iter_trials_metrics([t.id for t in trials], "training"))
    assert len(rows) == 6
    experiment.archive()
    print(client.whoami().username)


if __name__ == "__main__":
    main()
