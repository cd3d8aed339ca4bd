"""What counts as a sign of life of a run."""

from __future__ import annotations

from pathlib import Path

from support.clocks import ManualClock

from resolute.contracts.processes import ProcessTree
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.movement import Movement
from resolute.core import TrainContext
from resolute.core.reporting.trial_record import LocalTrialRecord
from resolute.core.tensorboard import LocalTensorboard
from resolute.spool.omissions import Raised
from resolute.spool.report_writer import ReportWriter
from resolute_launch.hangs.signs import Signs


def test_reports_of_the_script_are_signs_and_those_of_the_profiler_are_none(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.prepare()
    nobody = ProcessTree(None, b"RESOLUTE_TEST=no process has this")
    signs = Signs(run, nobody, output=lambda: 0, processor_interval=1000.0, clock=ManualClock())
    writer = ReportWriter(run.spool, name="rank0", omissions=Raised())
    train = TrainContext(
        reporter=writer,
        record=LocalTrialRecord(),
        tensorboard=LocalTensorboard(),
        reported=Movement(run.movement, rank=0).step,
    )
    train.report_training_metrics(1, {"loss": 0.5})
    assert signs.moved()
    assert not signs.moved()
    # As the profiler's thread does, whatever the script is at.
    writer.report("cpu", 1, {"cpu_util_simple": 7.0})
    assert not signs.moved()
    for path in run.spool.iterdir():
        path.unlink()
    assert not signs.moved()
    train.report_validation_metrics(1, {"loss": 0.5})
    assert signs.moved()
    writer.close()
