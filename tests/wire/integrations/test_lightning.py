"""Lightning's real Trainer as a trial of a real search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.training.lightning_modules import BATCHES, Line, loader, trainer
from support.training.trials import same, weights_of

from resolute import core
from resolute.lightning import ResoluteCallback, ResoluteLogger

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning"),
]


METRIC = "loss"
"""What the search decides by."""


def fit(latest: str | None = None, **options: Any) -> tuple[Line, list[int]]:
    """Trains, and returns the module and after how many batches it was validated."""
    options.setdefault("max_epochs", -1)
    with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
        module, callback = Line(METRIC), ResoluteCallback(context, latest_checkpoint=latest)
        validated: list[int] = []
        module.on_validation_end = lambda: validated.append(callback.batches)  # type: ignore[method-assign]
        running = trainer(callback, logger=ResoluteLogger(callback), num_sanity_val_steps=0, **options)
        running.fit(module, loader(), loader(), ckpt_path=callback.checkpoint_path)
        context.train.flush(20)
    return module, validated


def test_it_validates_where_the_search_says_and_stops_when_it_has_enough(start: Any, tmp_path: Path) -> None:
    with start(max_length=12, rungs=2) as trial:
        module, validated = fit()
        assert trial.flags.acknowledged
    assert module.trained == 12
    assert validated == [4, BATCHES, 2 * BATCHES, 12]


def test_it_follows_a_search_that_counts_in_epochs(start: Any) -> None:
    with start(max_length=3, unit="epochs", rungs=2) as trial:
        module, validated = fit(check_val_every_n_epoch=2)
        assert trial.flags.acknowledged
    assert module.trained == 3 * BATCHES
    assert validated == [BATCHES, 2 * BATCHES, 3 * BATCHES]


def test_a_paused_trial_goes_on_with_its_weights_of(start: Any, tmp_path: Path) -> None:
    with start(max_length=3 * BATCHES) as trial:

        class Paused(Line):
            def on_train_batch_end(self, *args: Any) -> None:
                if self.trained == BATCHES - 1:
                    trial.flags.set_signal(revision=1, preempt=True)

        with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as context:
            first, callback = Paused(METRIC), ResoluteCallback(context)
            trainer(callback, max_epochs=-1).fit(first, loader(), loader())
        assert first.trained == BATCHES
        (checkpoint,) = (
            path.name for path in (tmp_path / "checkpoints").iterdir() if (path / "lightning.ckpt").exists()
        )
        trial.flags.set_signal(revision=2, preempt=False)
        second, _ = fit(latest=checkpoint)
    assert second.trained == 2 * BATCHES
    straight = Line()
    trainer(max_epochs=3).fit(straight, loader(), loader())
    assert same(weights_of(second), weights_of(straight))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": 2}, r"max_epochs=2\) may stop before the search"),
        ({"max_steps": 11}, r"max_steps=11\) may stop before the search"),
        ({"min_epochs": 1}, "min_epochs and min_steps keep the trainer"),
        ({"limit_val_batches": 0}, "the search decides by validations"),
    ],
)
def test_a_trainer_that_would_not_follow_is_refused(start: Any, options: Any, message: str) -> None:
    with start(max_length=12), pytest.raises(ValueError, match=message):
        fit(**options)


def test_records_are_refused(start: Any) -> None:
    with start(max_length=12, unit="records"), pytest.raises(ValueError, match="counts in records"):
        fit()
