"""How much hyperparameters matter, on results whose answer is known."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import optuna
import pytest

from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import Event, Started, ValidationCompleted, ValidationReported
from resolute_searcher.log.operations import Create
from resolute_searcher.planning import importance
from resolute_searcher.planning.importance import (
    Estimate,
    TrialResult,
    estimate,
    trial_results,
)
from resolute_searcher.spec.space import Categorical, Const, DoubleRange, IntRange, LogRange, Space

SPACE = Space(
    {
        "x": DoubleRange(-1.0, 1.0),
        "y": DoubleRange(-1.0, 1.0),
        "net": Space({"width": IntRange(1, 8), "act": Categorical(("relu", "gelu", None))}),
        "lr": LogRange(-5.0, -1.0),
        "fixed": Const(3),
    }
)


def results(trials: int, metric: Any, *, seed: int = 1) -> list[TrialResult]:
    """Results of independent samples of the space, whose metric is a function of the hyperparameters."""
    chance = random.Random(seed)
    found = []
    for _ in range(trials):
        hparams = {
            "x": chance.uniform(-1, 1),
            "y": chance.uniform(-1, 1),
            "net.width": chance.randint(1, 8),
            "net.act": chance.choice(["relu", "gelu", None]),
            "lr": 10 ** chance.uniform(-5, -1),
            "fixed": 3,
        }
        found.append(TrialResult(hparams=hparams, metric=metric(hparams)))
    return found


def shares(found: Estimate) -> dict[str, float]:
    return {one.name: one.share for one in found.importances}


def test_a_quadratic_is_explained_by_its_parameter() -> None:
    found = estimate(results(120, lambda one: 10 * one["x"] ** 2 + 0.1 * one["y"]), SPACE)
    assert found.importances[0].name == "x"
    assert shares(found)["x"] > 0.9
    assert all(share < 0.03 for name, share in shares(found).items() if name != "x")
    assert set(shares(found)) == {"x", "y", "net.width", "net.act", "lr"}  # not what never differed
    assert all(0 <= one.error < 0.2 for one in found.importances)
    assert (found.trials, found.omitted) == (120, 0)


def test_two_parameters_share_as_their_variances_do() -> None:
    """The variance of a sum of independent terms is the sum of theirs: 4 to 1 here."""
    found = estimate(results(150, lambda one: 2 * one["x"] + one["y"]), SPACE)
    assert shares(found)["x"] == pytest.approx(0.8, abs=0.1)
    assert shares(found)["y"] == pytest.approx(0.2, abs=0.1)
    # What two parameters do only together, none of them does alone.
    product = estimate(results(150, lambda one: one["x"] * one["y"]), SPACE)
    assert shares(product)["x"] + shares(product)["y"] < 0.4


def test_choices_powers_and_nested_ones_are_told_apart() -> None:
    by_choice = estimate(
        results(100, lambda one: {"relu": 0.0, "gelu": 1.0, None: 4.0}[one["net.act"]]), SPACE
    )
    assert by_choice.importances[0].name == "net.act"
    assert by_choice.importances[0].share > 0.9
    # Each decade counts as much as any other, as the search draws them.
    by_power = estimate(results(150, lambda one: math.log10(one["lr"])), SPACE)
    assert by_power.importances[0].name == "lr"
    assert by_power.importances[0].share > 0.9


def test_the_shares_are_those_of_optuna() -> None:
    tried = [
        TrialResult(hparams={"x": one.hparams["x"], "y": one.hparams["y"]}, metric=one.metric)
        for one in results(60, lambda one: one["x"] ** 2 + one["y"])
    ]
    study = optuna.create_study()
    distribution = optuna.distributions.FloatDistribution(-1.0, 1.0)
    for one in tried:
        trial = optuna.trial.create_trial(
            params=dict(one.hparams), distributions=dict.fromkeys(("x", "y"), distribution), value=one.metric
        )
        study.add_trial(trial)
    theirs = optuna.importance.FanovaImportanceEvaluator(seed=0).evaluate(study)
    found = estimate(tried, SPACE)
    assert shares(found) == pytest.approx(theirs)
    assert estimate(tried, SPACE) == found


@pytest.mark.parametrize(
    "tried",
    [
        [],
        results(2, lambda one: one["x"]),
        results(20, lambda _: 1.5),
        [TrialResult(hparams={"fixed": 3}, metric=float(at)) for at in range(9)],
    ],
    ids=["none", "too few", "one metric", "one value"],
)
def test_without_differences_nothing_is_said(tried: list[TrialResult]) -> None:
    assert estimate(tried, SPACE).importances == ()


def test_what_is_too_much_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    # Fewer than it regards otherwise: a forest of so many trees takes ten seconds.
    most_trials, most_hparams = 48, 6
    monkeypatch.setattr(importance, "MAX_TRIALS", most_trials)
    monkeypatch.setattr(importance, "MAX_HPARAMS", most_hparams)
    chance = random.Random(2)
    many: list[TrialResult] = []
    for at in range(most_trials + 40):
        hparams: dict[str, Any] = {f"p{place:02}": chance.random() for place in range(most_hparams + 3)}
        hparams["a_text"] = f"run {at}"  # another one in each trial
        if at % 2:
            hparams["only_some"] = at
        many.append(TrialResult(hparams=hparams, metric=hparams["p00"]))
    found = estimate(many, Space())
    assert (found.trials, len(found.importances), found.omitted) == (most_trials, most_hparams, 3 + 2)
    assert found.importances[0].name == "p00"


def test_odd_values_of_clients_are_taken() -> None:
    """Not of the space: a list, a number and a text, a number that is none, one that is beyond its range."""
    chance = random.Random(3)
    odd = [[1, 2], "1", 1, True, None]
    tried = [
        TrialResult(
            hparams={
                "mixed": odd[at % 5],
                "x": 50.0 * chance.random(),
                "lr": float(at % 3 - 1),
                "nan": [math.nan, 1.0][at % 2],
            },
            metric=1e308 if at == 7 else at % 5,
        )
        for at in range(40)
    ]
    assert set(shares(estimate(tried, SPACE))) == {"mixed", "x", "lr", "nan"}


def test_results_are_the_best_finite_metrics_of_the_log() -> None:
    def entry(event: Event, *created: Mapping[str, Any]) -> Entry:
        operations = tuple(Create(f"t{at}", dict(hparams), 0) for at, hparams in enumerate(created))
        return Entry(sequence=1, event=event, operations=operations, actions=(), last_action=0, draws=0)

    log = [
        entry(Started(), {"a": 1, "in": {"b": [2]}}, {"a": 2}, {"a": 3}),
        entry(ValidationCompleted("t0", 0.5, 10)),
        entry(ValidationCompleted("t0", 0.7, 20)),
        entry(ValidationCompleted("t1", math.nan, 10)),
        entry(ValidationReported("t2", -math.inf, 1.0, 1, "s", 1)),
        entry(ValidationReported("t2", 0.9, 2.0, 1, "s", 2)),
    ]
    least = trial_results(log, smaller_is_better=True)
    assert least == [
        TrialResult(hparams={"a": 1, "in.b": [2]}, metric=0.5),
        TrialResult(hparams={"a": 3}, metric=0.9),
    ]
    assert trial_results(log, smaller_is_better=False)[0].metric == 0.7
