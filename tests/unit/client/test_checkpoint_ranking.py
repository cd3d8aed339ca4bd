"""Which checkpoint is the best, where several have the same value."""

from __future__ import annotations

import pytest

from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.client.objects.checkpoint_ranking import ValidatedCheckpoint, ranked
from resolute.client.schema import convert


def written(trial: int, *, steps: int, accuracy: float) -> ValidatedCheckpoint:
    checkpoint = checkpoint_pb2.Checkpoint(checkpoint_id=f"{trial}-{steps}", steps_completed=steps)
    return ValidatedCheckpoint(
        convert.checkpoint(checkpoint), convert.trial(trial_pb2.Trial(number=trial)), {"accuracy": accuracy}
    )


@pytest.mark.parametrize("smaller", [True, False])
def test_of_equal_checkpoints_the_earlier_is_the_best(smaller: bool) -> None:
    experiment = convert.experiment(
        experiment_pb2.Experiment(searcher_metric="accuracy", smaller_is_better=smaller)
    )
    # Services list the newest first.
    newest_first = [
        written(2, steps=30, accuracy=0.5),
        written(3, steps=10, accuracy=0.5),
        written(2, steps=20, accuracy=0.5),
        written(1, steps=10, accuracy=0.9 if smaller else 0.1),
    ]
    order = [item.checkpoint.uuid for item in ranked(newest_first, experiment)]
    assert order == ["2-20", "2-30", "3-10", "1-10"]
