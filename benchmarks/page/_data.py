"""What the page is loaded with: long, wide and many, each sent through the contract as trials send it."""

from __future__ import annotations

import itertools
import math
import random
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.page._cluster import PageCluster, for_all
from resolute.api.experiments.v1 import run_pb2
from resolute.api.logs.v1 import line_pb2
from resolute.api.metrics.v1 import report_pb2
from resolute.contracts.values import to_value

METRIC = "loss"
SELECTION = {"searcher_metric": METRIC, "smaller_is_better": True}
_ROWS = 8000
"""Reports of one call."""
_LINES = 1000
"""Lines of one call."""
_RANKS = 8
_LEVELS = (line_pb2.LEVEL_DEBUG, line_pb2.LEVEL_INFO, line_pb2.LEVEL_WARNING, line_pb2.LEVEL_ERROR)


@dataclass(frozen=True)
class Sizes:
    """How much of everything; what the figures are promised for unless fewer are asked for."""

    runs: int = 1500
    names: int = 1500
    columns: int = 10_000
    points: int = 1_000_000
    lines: int = 200
    log: int = 100_000
    search: int = 10_000
    experiments: int = 10_000


def block(group: str, steps: range, names: list[str], values: Any, *, first: int = 0) -> Any:
    """Reports of some steps, one second apart."""
    begin = time.time() - 86_400
    return report_pb2.ReportBlock(
        group=group,
        names=names,
        sequences=range(first, first + len(steps)),
        steps=steps,
        times=[begin + step for step in steps],
        values=np.asarray(values, dtype=float).ravel().tolist(),
    )


def random_search(trials: int) -> dict[str, Any]:
    """A config with so many trials at once."""
    method = {"name": "random", "max_trials": trials, "max_concurrent_trials": trials}
    return {
        "hyperparameters": {
            "lr": {"type": "log", "minval": -5, "maxval": -1, "base": 10},
            "layers": {"type": "int", "minval": 1, "maxval": 16},
        },
        "searcher": {
            **method,
            "metric": METRIC,
            "smaller_is_better": True,
            "max_length": {"batches": 100_000},
        },
    }


async def many_experiments(cluster: PageCluster, *, experiments: int) -> tuple[int, list[Any]]:
    """Experiments of one trial each that ran elsewhere and ended, such as years of work leave them."""
    admin = cluster.caller.admin
    outcomes = (run_pb2.RUN_OUTCOME_COMPLETED, run_pb2.RUN_OUTCOME_FAILED)

    async def record(number: int) -> None:
        searcher = {"metric": METRIC, "smaller_is_better": True}
        begun = await cluster.caller.call(
            "BeginRun",
            token=admin,
            external_run_id=str(uuid.uuid4()),
            name=f"experiment {number} of a lot",
            config=to_value({"labels": [f"label{number % 20}"], "searcher": searcher}),
        )
        run = {"trial_id": begun.trial.trial_id, "run": begun.run}
        await cluster.caller.call("EndRun", token=begun.token, outcome=outcomes[number % 7 == 0], **run)

    await for_all(range(experiments), record)
    return experiments, []


async def many_runs(cluster: PageCluster, *, runs: int, names: int) -> tuple[int, list[Any]]:
    """An experiment of many trials, each with many metrics."""
    number, trials = await cluster.create(name="many runs", trials=runs, **random_search(runs))
    labels = [METRIC, *(f"layer{at // 10}.weight{at % 10}" for at in range(1, names))]

    async def report(trial: Any) -> None:
        owner, token = cluster.owner(trial)
        values = np.random.default_rng(trial.number).normal(size=(2, names)) ** 2
        blocks = [block("training", range(1, 3), labels, values)]
        blocks.append(block("validation", range(2, 3), [METRIC], values[1, :1], first=2))
        await cluster.caller.call(
            "IngestReports",
            token=token,
            source="s",
            first_sequence=0,
            count=3,
            blocks=blocks,
            **SELECTION,
            **owner,
        )

    await for_all(trials, report)
    return number, trials


async def many_columns(cluster: PageCluster, *, columns: int) -> tuple[int, list[Any]]:
    """Trials with very many hyperparameters and as many metrics."""
    config = random_search(4)
    config["hyperparameters"] |= {
        f"option{at}": {"type": "int", "minval": 0, "maxval": 9} for at in range(columns - 2)
    }
    number, trials = await cluster.create(name="many columns", trials=4, **config)
    labels = [f"tag{at // 100}.part{at % 100}" for at in range(columns - 1)]

    async def report(trial: Any) -> None:
        owner, token = cluster.owner(trial)
        values = np.random.default_rng(trial.number).normal(size=(2, len(labels))) ** 2
        blocks = [block("training", range(1, 3), labels, values)]
        blocks.append(block("validation", range(2, 3), [METRIC], [values[1, 0]], first=2))
        await cluster.caller.call(
            "IngestReports",
            token=token,
            source="s",
            first_sequence=0,
            count=3,
            blocks=blocks,
            **SELECTION,
            **owner,
        )

    await for_all(trials, report)
    return number, trials


async def long_series(cluster: PageCluster, *, points: int) -> tuple[int, list[Any]]:
    """One trial with one very long series."""
    number, trials = await cluster.create(name="long series", trials=1, **random_search(1))
    await report_series(cluster, trials[0], points)
    return number, trials


async def many_lines(cluster: PageCluster, *, lines: int) -> tuple[int, list[Any]]:
    """Many trials with a curve each."""
    number, trials = await cluster.create(name="many lines", trials=lines, **random_search(lines))
    await for_all(trials, lambda trial: report_series(cluster, trial, 2000))
    return number, trials


async def report_series(cluster: PageCluster, trial: Any, points: int, *, source: str = "s") -> None:
    """Reports a curve with noise, and a validation at its end."""
    noise = np.random.default_rng(trial.number).normal(size=points)
    await report_values(cluster, trial, 3 / np.log(np.arange(points) + 3) + 0.05 * noise, source=source)


async def report_values(cluster: PageCluster, trial: Any, values: Any, *, source: str = "s") -> None:
    """Reports values of the metric at steps from 0, and the last one as a validation."""
    owner, token = cluster.owner(trial)
    owner["source"] = source
    points = len(values)
    for first in range(0, points, _ROWS):
        steps = range(first, min(first + _ROWS, points))
        blocks = [block("training", steps, [METRIC], values[steps.start : steps.stop], first=first)]
        await cluster.caller.call(
            "IngestReports",
            token=token,
            first_sequence=first,
            count=len(steps),
            blocks=blocks,
            **SELECTION,
            **owner,
        )
    last = [block("validation", range(points, points + 1), [METRIC], values[-1:], first=points)]
    await cluster.caller.call(
        "IngestReports", token=token, first_sequence=points, count=1, blocks=last, **SELECTION, **owner
    )


async def long_log(cluster: PageCluster, *, lines: int) -> tuple[int, list[Any]]:
    """One trial with a long log of eight ranks."""
    number, trials = await cluster.create(name="long log", trials=1, **random_search(1))
    await say(cluster, trials[0], first=0, count=lines)
    return number, trials


async def say(cluster: PageCluster, trial: Any, *, first: int, count: int) -> None:
    """Sends numbered lines of a trial."""
    owner, token = cluster.owner(trial)
    for begin in range(first, first + count, _LINES):
        numbers = range(begin, min(begin + _LINES, first + count))
        await cluster.caller.call(
            "IngestLines", token=token, source="log", first_sequence=begin, lines=_lines(numbers), **owner
        )


def _lines(numbers: range) -> line_pb2.LineColumns:
    now = time.time_ns()
    return line_pb2.LineColumns(
        messages=[
            f"line {number} of a training: loss {1 / (number + 1):.6f}, 812.4 samples/s" for number in numbers
        ],
        times=[now + number for number in numbers],
        levels=[_LEVELS[3] if number % 1000 == 999 else _LEVELS[number % 3] for number in numbers],
        ranks=[number % _RANKS for number in numbers],
        writer_indexes=[0] * len(numbers),
        writers=[line_pb2.LineColumns.Writer(stdtype="stdout", origin="task")],
    )


async def long_search(cluster: PageCluster, *, trials: int) -> tuple[int, list[Any]]:
    """An adaptive search whose trials have trained as far as it let them."""
    config = random_search(trials)
    # So many at once that each bracket has all its trials from the beginning: none waits for another's end.
    method = {"name": "adaptive_asha", "max_rungs": 4, "divisor": 4, "max_concurrent_trials": 4 * trials}
    config["searcher"] |= method
    number, made = await cluster.create(name="long search", trials=trials, **config)
    sequences = {trial.trial_id: itertools.count() for trial in made}
    # Several trials train at once, and some much longer than others, as on a cluster.
    chance = random.Random(7)
    order = list(made)
    chance.shuffle(order)

    async def train(trial: Any) -> None:
        owner, token = cluster.owner(trial)
        speed, floor = chance.uniform(0.2, 2.0), chance.uniform(0.1, 0.9)
        while True:
            answer = await cluster.caller.call("GetOperation", token=token, trial_id=trial.trial_id, run=1)
            operation = answer.operation
            if operation.closed or operation.completed or not operation.HasField("length"):
                return
            done = operation.length
            loss = floor + math.exp(-speed * done / 20_000)
            await cluster.caller.call(
                "CompleteOperation", token=token, trial_id=trial.trial_id, run=1, length=done, metric=loss
            )
            sequence = next(sequences[trial.trial_id])
            validated = [block("validation", range(done, done + 1), [METRIC], [loss], first=sequence)]
            await cluster.caller.call(
                "IngestReports",
                token=token,
                source="s",
                first_sequence=sequence,
                count=1,
                blocks=validated,
                **SELECTION,
                **owner,
            )

    await for_all(order, train)
    await for_all(order, train)  # those that were promoted after they had waited
    return number, await cluster.trials(number)
