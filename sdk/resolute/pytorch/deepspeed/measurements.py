"""Reports the measurements of DeepSpeed's autotuning before DeepSpeed ends the measured process."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import torch

from resolute import core

MODEL_INFO = "model_info.json"
METRICS = "autotuning_metric.json"
CPU_SHARE = 64
"""Without a GPU, a record counts as at least this part of the memory: its use by a process tells little."""


@contextlib.contextmanager
def report_measurements(
    core_context: core.Context, op: core.SearcherOperation, steps_completed: int | None = None
) -> Iterator[None]:
    """Reports DeepSpeed's measurements when DeepSpeed exits the process; all ranks use it.

    Args:
        core_context: The Core API.
        op: The operation of the search, which is completed.
        steps_completed: Steps to report them at; default the length of the operation.

    Raises:
        AssertionError: The search has another operation for the trial.
    """
    try:
        yield
    except SystemExit:
        chief = core_context.distributed.rank == 0
        results = core_context.distributed.broadcast(_read_results() if chief else None)
        if results is not None:
            if chief:
                steps = op.length if steps_completed is None else steps_completed
                core_context.train.report_validation_metrics(steps, results)
                op.report_completed(_searched(core_context, results))
            left = list(core_context.searcher.operations())
            assert not left, "a trial of a search for a DeepSpeed config has one operation only"
        raise


@contextlib.contextmanager
def measure_operation(core_context: core.Context) -> Iterator[None]:
    """Completes the operation of a trial with the measurements of DeepSpeed."""
    op = next(core_context.searcher.operations())
    with report_measurements(core_context, op):
        yield


def _read_results() -> dict[str, Any] | None:
    """Returns DeepSpeed's profile of the model or its training results; None if it wrote neither or both."""
    paths = [Path(name) for name in (MODEL_INFO, METRICS) if Path(name).exists()]
    if len(paths) != 1:
        return None
    results: dict[str, Any] = json.loads(paths[0].read_text())
    if paths[0].name == MODEL_INFO:
        results["gpu_mem"] = _device_memory()
        if not torch.cuda.is_available():
            least = results["gpu_mem"] // CPU_SHARE
            results["activation_mem_per_gpu"] = max(int(results["activation_mem_per_gpu"]), least)
    return results


def _device_memory() -> int:
    if torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    return int(psutil.virtual_memory().available)


def _searched(core_context: core.Context, results: dict[str, Any]) -> float:
    """Returns the search metric of the measurements; a profile of the model has none."""
    info = core_context.info
    name = None if info is None else info.trial._config["searcher"]["metric"]
    return float(results.get(str(name), 0.0))
