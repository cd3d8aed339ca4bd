"""How fast reports of ten metrics become durable, beside MLflow's real server in the same run.

    python benchmarks/metrics/beside_mlflow.py [--reports N] [--seconds S] [--json]

MLflow is no dependency of this product and pins much, so it lives in an environment of its own:

    python -m venv ~/.cache/resolute/mlflow-venv && ~/.cache/resolute/mlflow-venv/bin/pip install 'mlflow>=3'

RESOLUTE_BENCH_MLFLOW names the interpreter of another one; without any, nothing is measured. Both sides are
durable: MLflow's SQLite fsyncs each commit, and so does the service with the database settings of
``resolute up``. Each ratio is printed with the goal that it has.

- ``drain``: the backlog of a spool through sender and service
- ``live 1``, ``live 8``: that many trials at once, each with a trainer and a supervisor of its own, from the
  first report to the moment when the last one is durable
- ``call``: what ``report_training_metrics`` costs the training thread while that continues
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import uuid
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.metrics.ingest import MOST_CALL_US, NAMES, Rates, measure
from benchmarks.standalone import Standalone, say, standalone

_HERE = Path(__file__).resolve().parent
_DEFAULT_PYTHON = Path.home() / ".cache" / "resolute" / "mlflow-venv" / "bin" / "python"
_HOUR = 3600.0


@dataclass(frozen=True)
class Ratio:
    """One comparison."""

    name: str
    value: float
    goal: float


@dataclass
class Result:
    """What both sides did."""

    mlflow: dict[str, Any]
    rates: Rates
    live: dict[int, float] = field(default_factory=dict)
    """Values a second by number of trials."""
    call_us: dict[int, float] = field(default_factory=dict)
    """Median cost of a report by number of trials."""

    def ratios(self) -> list[Ratio]:
        """Every comparison and what it should be."""
        batch, single = self.mlflow["batch_values"], self.mlflow["single_calls"]
        found = [Ratio("drain / MLflow log_batch, values", self.rates.drain * len(NAMES) / batch, 500)]
        for count, values in self.live.items():
            found += [
                Ratio(f"live {count} / MLflow log_batch, values", values / batch, 100),
                # A call of MLflow's carries one value and a report of ours ten: this compares calls.
                Ratio(f"live {count} / MLflow log_metric, calls", values / len(NAMES) / single, 200),
            ]
        cheapest = self.mlflow["async_call_us"] / max(self.call_us[1], 1e-9)
        return [
            *found,
            Ratio("MLflow asynchronous call / our call, time", cheapest, 1),
            Ratio("drain / raw SQLite, reports", self.rates.drain / self.rates.raw, 0),
            Ratio("service alone / raw SQLite, reports", self.rates.service / self.rates.raw, 0),
        ]


def measure_both(python: Path, *, reports: int, seconds: float) -> Result:
    """Measures MLflow, then ours."""
    command = [str(python), str(_HERE / "_mlflow_load.py"), str(seconds), "mlflow"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result = Result(json.loads(output.splitlines()[-1]), measure(reports))
    for count in (1, 8):
        result.live[count], result.call_us[count] = live(count, reports // count)
    return result


def live(count: int, reports: int) -> tuple[float, float]:
    """Values a second of some trials at once, and the median of what a report cost."""
    with standalone("metrics") as service:
        runs = [_start(service, number, reports) for number in range(count)]
        for run in runs:
            assert run.stdout is not None
            run.stdout.readline()
        answers = []
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("go\n")
            run.stdin.flush()
        for run in runs:
            output, _ = run.communicate()
            if run.returncode != 0:
                raise RuntimeError("a run failed; its message is above")
            answers.append(json.loads(output))
    took = max(answer["ended"] for answer in answers) - min(answer["began"] for answer in answers)
    return count * reports * len(NAMES) / took, statistics.median(answer["call_us"] for answer in answers)


def _start(service: Standalone, number: int, reports: int) -> subprocess.Popen[str]:
    run = replace(service.run, trial_id=str(uuid.uuid4()), allocation_id=str(uuid.uuid4()))
    folder = service.folder / f"run{number}"
    folder.mkdir()
    identity = {"trial_id": run.trial_id, "run": run.run, "experiment_id": run.experiment_id}
    environment = {
        **os.environ,
        "RESOLUTE_BENCH_RUN": json.dumps(identity),
        "RESOLUTE_BENCH_TOKEN": service.signer.trial(run, ttl=_HOUR),
    }
    command = [sys.executable, str(_HERE / "_live_run.py"), "supervise", service.address, str(folder)]
    return subprocess.Popen(
        [*command, str(reports)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _describe(result: Result) -> list[str]:
    mlflow = result.mlflow
    peer = (
        f"MLflow {mlflow['version']}: log_batch {mlflow['batch_values']:,.0f} values/s, log_metric "
        f"{mlflow['single_calls']:,.0f} calls/s, asynchronous call {mlflow['async_call_us']:,.0f} us"
    )
    live = [
        f"live {count}   {values:14,.0f} values/s, a call {result.call_us[count]:.1f} us (median)"
        for count, values in result.live.items()
    ]
    return [peer, *result.rates.lines(), *live, "", *(_line(ratio) for ratio in result.ratios())]


def _line(ratio: Ratio) -> str:
    goal = f"   (goal {ratio.goal:,.0f} x)" if ratio.goal else ""
    return f"{ratio.name:44} {ratio.value:10,.2f} x{goal}"


def main() -> int:
    """Prints what was measured; returns 1 when a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=200_000, help="reports to send (default: 200000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="per way to log to MLflow (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    python = Path(os.environ.get("RESOLUTE_BENCH_MLFLOW") or _DEFAULT_PYTHON)
    if not python.exists():
        say(f"skipped: there is no MLflow at {python}; see the head of this file for how to install it")
        return 0
    result = measure_both(python, reports=options.reports, seconds=options.seconds)
    if options.json:
        ratios = {ratio.name: ratio.value for ratio in result.ratios()}
        say(json.dumps({**asdict(result), "ratios": ratios}))
    else:
        say("\n".join(_describe(result)))
    cheap = result.rates.call_us <= MOST_CALL_US
    return 0 if cheap and all(ratio.value >= ratio.goal for ratio in result.ratios()) else 1


if __name__ == "__main__":
    sys.exit(main())
