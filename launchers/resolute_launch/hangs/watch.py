"""Watches a run for hangs, and reports their cause."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resolute.api.experiments.v1 import experiment_pb2
from resolute.contracts.clock import Clock
from resolute.contracts.processes import ProcessTree
from resolute_launch.container.task import Task
from resolute_launch.hangs.diagnosis import Diagnosis, diagnose
from resolute_launch.hangs.roll_call import RankAnswer, call_roll
from resolute_launch.hangs.signs import Signs
from resolute_launch.hangs.stall import LEAST_SECONDS, Stall
from resolute_launch.ranks.failures import first_rank_failure, rank_ends

_LOOKS = 40
"""So often in the time after which a run hangs it is looked at."""
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 0.25, 5.0
_PROCESSOR_LOOKS = 10
_EARLY = 0.5
"""After this share of the time stacks are taken for the first time: a library may end its ranks before."""
_IDLE_KINDS = (experiment_pb2.EXPERIMENT_KIND_COMMAND, experiment_pb2.EXPERIMENT_KIND_TENSORBOARD)
_LAST_WORDS_SECONDS = 3.0
"""How long after the failure of a rank the others are asked what they wait for."""
_MOST_RANKS, _MOST_LINES = 16, 60
_log = logging.getLogger("resolute.supervisor")


@dataclass(frozen=True, slots=True)
class HangSettings:
    """The section ``hang`` of a config."""

    after: float | None
    """Seconds without a sign of life; None to take them from the run itself."""
    restart: bool
    """Whether a run that hangs is ended, so that another one begins."""
    watched: bool
    """Whether a run may hang at all: commands and TensorBoard may idle, unless their config gives seconds."""

    @classmethod
    def of(cls, task: Task) -> HangSettings:
        """Reads the section of a task; without one, a hang is only reported."""
        section = task.config.get("hang") or {}
        after = section.get("after", "auto")
        seconds = None if after == "auto" else float(after)
        return cls(
            after=seconds,
            restart=section.get("on_hang") == "restart",
            watched=seconds is not None or task.spec.kind not in _IDLE_KINDS,
        )

    @property
    def interval(self) -> float:
        """Seconds between two looks."""
        return min(max((self.after or LEAST_SECONDS) / _LOOKS, _SHORTEST_INTERVAL), _LONGEST_INTERVAL)


class HangWatch:
    """A thread that checks the processes of a run from ``start`` to ``stop``.

    Args:
        task: The run's task.
        output: Returns the amount of output so far.
        log_line: Adds a line to the log of the trial.
        report: Reports the cause of the hang to the control plane; an empty text once the run continues.
        end: Ends the run for a reason.
        clock: Measures the time.
    """

    def __init__(
        self,
        task: Task,
        *,
        output: Callable[[], int],
        log_line: Callable[[str], None],
        report: Callable[[str], None],
        end: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._run, self._output, self._clock = task.run, output, clock
        self._log_line, self._report, self._end = log_line, report, end
        self._settings = HangSettings.of(task)
        self._stall = Stall(self._settings.after, interval=self._settings.interval, clock=clock)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._early: Diagnosis | None = None
        self._reported = False
        self._death_seen = False

    @property
    def early_diagnosis(self) -> str:
        """What kept a run that stood still when it ended; empty if it moved or that was reported."""
        return "" if self._early is None or self._reported else self._early.sentence

    def start(self, tree: ProcessTree) -> None:
        """Begins to look, unless it is a run that may idle: the entrypoint runs.

        Args:
            tree: Its processes.
        """
        if not self._settings.watched:
            return
        self._stall.look(moved=True)
        self._thread = threading.Thread(target=self._watch, args=(tree,), name="hang-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a roll call that is under way is finished."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, tree: ProcessTree) -> None:
        settings = self._settings
        signs = Signs(
            self._run,
            tree,
            output=self._output,
            processor_interval=(settings.after or LEAST_SECONDS) / _PROCESSOR_LOOKS,
            clock=self._clock,
        )
        while not self._stop.wait(settings.interval):
            try:
                self._look(signs, tree)
            except Exception:  # noqa: BLE001  # what only watches must not end a run
                _log.exception("the check of the run for progress failed")

    def _look(self, signs: Signs, tree: ProcessTree) -> None:
        seconds = self._stall.look(moved=signs.moved())
        if not seconds:
            self._note_movement()
        elif not self._reported and seconds >= self._stall.limit:
            self._tell(tree)
        elif self._early is None and seconds >= _EARLY * self._stall.limit:
            self._early, _ = self._call_roll(tree)
        self._look_at_deaths(tree)

    def _note_movement(self) -> None:
        self._early = None
        if self._reported:
            self._reported = False
            self._log_line("the run moves again")
            self._report("")

    def _tell(self, tree: ProcessTree) -> None:
        diagnosis, ranks = self._call_roll(tree)
        self._reported = True
        self._log_line(f"WARNING: nothing of the run moves: {diagnosis.sentence}")
        self._show(diagnosis, ranks)
        self._report(diagnosis.sentence)
        if self._settings.restart:
            self._end(f"nothing of the run moved: {diagnosis.sentence}")

    def _look_at_deaths(self, tree: ProcessTree) -> None:
        """Says once what the ranks wait for that have outlived another one."""
        failure = None if self._death_seen else first_rank_failure(self._run)
        if failure is None or self._clock.time() - failure.time < _LAST_WORDS_SECONDS:
            return
        self._death_seen = True
        diagnosis, ranks = self._call_roll(tree)
        if ranks:
            self._log_line(f"a rank has failed, and others still run: {diagnosis.sentence}")
            self._show(diagnosis, ranks)

    def _call_roll(self, tree: ProcessTree) -> tuple[Diagnosis, list[RankAnswer]]:
        minutes = _spelled(self._stall.seconds)
        try:
            ends = rank_ends(self._run)
            ranks = call_roll(tree, self._run.stacks_file, ranked=bool(ends))
            return diagnose(ranks, ends, work=self._run.work.resolve(), minutes=minutes), ranks
        except Exception:  # noqa: BLE001  # that it hangs is known all the same, and what to do about it
            _log.exception("the processes could not be asked where they are")
            return Diagnosis(f"its processes could not be asked where they are, {minutes}", ()), []
        finally:
            self._stall.skip()

    def _show(self, diagnosis: Diagnosis, ranks: Sequence[RankAnswer]) -> None:
        """Puts the stacks into the log: of those first who keep the others waiting."""
        in_order = sorted(ranks, key=lambda rank: (rank.rank not in diagnosis.guilty, rank.rank))
        for rank in in_order[:_MOST_RANKS]:
            for answer in (rank.first, *rank.children):
                if answer.text:
                    self._log_line(f"stacks of rank {rank.rank}, process {answer.member.identity.pid}:")
                    for line in answer.text.splitlines()[:_MOST_LINES]:
                        self._log_line(line)
        for dump in sorted(self._run.flight.glob("*")):
            self._log_line(f"NCCL's flight recorder wrote {dump}")


def _spelled(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes"
