"""What must hold after a search with faults, each as a check that says what is wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import grpc
from faults.harness.fault_cluster import FaultCluster
from faults.harness.journals import Point, RunJournal
from faults.harness.reference import Completion, ReferenceRun
from faults.harness.service_queries import (
    channel_to,
    checkpoints_of,
    content_of,
    lines_of,
    log_of,
    replay,
    reports_of,
)

from resolute_launch.container.lost_output import MARKER
from resolute_searcher.wire.contract import stored_operation
from resolute_searcher.wire.operations import operation_from

_TIDY_SECONDS = 60.0
"""How long processes and directories of runs may stay behind: what they hold is still being sent."""
_MOST_UNSENT = 0.1
"""The share of all reports that nodes may take with them: those of the moment before, as a rule.

Reports are sent within a fifth of a second, or when the control plane is there again.
"""
_MOST_UNSAVED = 0.25
"""The share of all lines that killed supervisors may hold: those that they were about to write to spools.

A trial of the harness prints a line in some ten milliseconds; a supervisor may get no processor for longer.
"""


@dataclass
class Evidence:
    """What there is to judge by."""

    cluster: FaultCluster
    experiment: str
    """UUID of the experiment."""
    journals: Mapping[tuple[str, int], RunJournal]
    """What the trials wrote down, by trial and run."""
    course: ReferenceRun | None = None
    """How the search goes undisturbed; without it nobody judges what it decides."""
    unsaved_lines: int = 0
    """Lines that are missing in logs that say that a supervisor was lost; counted by the checks."""
    unsent_reports: int = 0
    """Reports that went with a node that fell for good, and all that was on it; counted by the checks."""

    def fell(self, journal: RunJournal) -> bool:
        """Whether the node of a run fell for good."""
        return f"{journal.trial_id}.{journal.run}" in self.cluster.engine.fallen


def violations(evidence: Evidence) -> list[str]:
    """Checks everything and returns what does not hold."""
    found = list(_leaks(evidence))
    with channel_to(evidence.cluster) as channel:
        for check in (_reports, _checkpoints, _lines):
            found += check(evidence, channel)
        if evidence.course is not None:
            found += _endings(evidence, evidence.course)
            found += _decisions(evidence, evidence.course, channel)
    return found


def _endings(evidence: Evidence, course: ReferenceRun) -> Iterator[str]:
    """The experiment completed, and each of its trials."""
    experiment = _one(evidence.cluster, "SELECT state FROM experiments")
    if experiment != "COMPLETED":
        yield f"the experiment is {experiment}"
    states = Counter(state for (state,) in _rows(evidence.cluster, "SELECT state FROM trials"))
    trials = len({completion.trial_key for completion in course.completions})
    if states != {"COMPLETED": trials}:
        yield f"trials ended as {dict(states)}; all {trials} should be COMPLETED"


def _leaks(evidence: Evidence) -> Iterator[str]:
    """Nothing is left: nothing of a run in its engine, no run without an end, no message, no slot."""
    cluster = evidence.cluster
    yield from _settled(lambda: cluster.engine.left_over(cluster.home))
    unsettled = _one(evidence.cluster, "SELECT count(*) FROM runs WHERE outcome = 'UNSPECIFIED'")
    if unsettled:
        yield f"{unsettled} runs were never settled, and hold their slots"
    unsent = _one(evidence.cluster, "SELECT count(*) FROM outbox")
    if unsent:
        yield f"{unsent} messages were never delivered"
    for journal in evidence.journals.values():
        if journal.processes != 1:
            yield f"run {journal.run} of {journal.trial_id} was started {journal.processes} times"


def _decisions(evidence: Evidence, course: ReferenceRun, channel: grpc.Channel) -> Iterator[str]:
    """The recovered search is the fold of its log, and decided as if nothing had happened to it."""
    replayed = replay(channel, evidence.experiment)
    if not replayed.equal:
        yield f"replayed, the log decides otherwise: {replayed.detail}"
    completions = []
    for entry in log_of(channel, evidence.experiment):
        if entry.event.HasField("validation_completed"):
            completed = entry.event.validation_completed
            operations = tuple(operation_from(stored_operation(operation)) for operation in entry.operations)
            completions.append(
                Completion(completed.trial_key, completed.length, completed.metric, operations)
            )
    for number, (is_, should) in enumerate(zip(completions, course.completions, strict=False)):
        if is_ != should:
            yield f"completion {number} was {is_}; undisturbed it is {should}"
            return
    if len(completions) != len(course.completions):
        yield f"{len(completions)} completions; undisturbed there are {len(course.completions)}"


def _reports(evidence: Evidence, channel: grpc.Channel) -> Iterator[str]:
    """Each report whose call returned arrived once; none arrived that was not made.

    A run whose node fell may lack its last ones: reports are sent in the order in which they are made.
    """
    arrived: dict[tuple[str, int], Counter[Point]] = {key: Counter() for key in evidence.journals}
    for trial in {trial for trial, _ in evidence.journals}:
        for report in reports_of(channel, trial):
            arrived.setdefault((trial, report.run), Counter())[report.group, report.steps] += 1
    for key, points in arrived.items():
        journal = evidence.journals.get(key) or RunJournal(*key)
        missing = journal.made - points
        if evidence.fell(journal) and are_last(list(journal.made), missing):
            evidence.unsent_reports += missing.total()
            missing.clear()
        for kind, wrong in {
            "lost": missing,
            "doubled": Counter({point: times - 1 for point, times in points.items() if times > 1}),
            "never made": points - journal.begun,
        }.items():
            if wrong:
                yield f"reports of run {journal.run} of {journal.trial_id} were {kind}: {sorted(wrong)}"
    made = sum(journal.made.total() for journal in evidence.journals.values())
    if evidence.unsent_reports > _MOST_UNSENT * made:
        yield f"{evidence.unsent_reports} of {made} reports fell with nodes"


def are_last(made: Sequence[Hashable], missing: Collection[Hashable]) -> bool:
    """Whether nothing that was made after the first one that is missing has arrived."""
    return set(made[len(made) - len(missing) :]) == set(missing)


def _checkpoints(evidence: Evidence, channel: grpc.Channel) -> Iterator[str]:
    """Each checkpoint whose call returned can be seen, and what can be seen is whole."""
    seen = {
        checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints_of(channel, evidence.experiment)
    }
    for journal in evidence.journals.values():
        for uuid, steps in journal.stored.items():
            if uuid not in seen:
                yield f"checkpoint {uuid} of run {journal.run} of {journal.trial_id} at {steps} is gone"
    for uuid, checkpoint in seen.items():
        for file in checkpoint.files:
            content = content_of(channel, uuid, file)
            if content is None:
                yield f"file {file.path} of checkpoint {uuid} is not as it was committed"
            elif file.path == "step" and content.decode() != str(checkpoint.steps_completed):
                yield f"checkpoint {uuid} does not hold step {checkpoint.steps_completed}"


def _lines(evidence: Evidence, channel: grpc.Channel) -> Iterator[str]:
    """Each printed line is in the log once; few of a lost supervisor may be missing, and the log says so.

    A run whose node fell may lack its last ones, and nobody is left to say so.
    """
    arrived: Counter[str] = Counter()
    lost: set[tuple[str, int]] = set()
    for trial in {trial for trial, _ in evidence.journals}:
        for line in lines_of(channel, trial):
            if line.message == MARKER:
                lost.add((trial, line.run))
            elif line.stdtype == "stdout":
                arrived[line.message] += 1
    for key, journal in evidence.journals.items():
        missing = [text for text in journal.printed if not arrived[text]]
        doubled = [text for text in journal.printed if arrived[text] > 1]
        if doubled:
            yield f"lines of run {journal.run} of {journal.trial_id} were doubled: {doubled}"
        fell = evidence.fell(journal) and are_last(journal.printed, missing)
        if missing and key not in lost and not fell:
            yield f"lines of run {journal.run} of {journal.trial_id} were lost in silence: {missing}"
        evidence.unsaved_lines += len(missing)
    printed = sum(len(journal.printed) for journal in evidence.journals.values())
    if evidence.unsaved_lines > _MOST_UNSAVED * printed:
        yield f"{evidence.unsaved_lines} of {printed} lines went with supervisors"


def _settled(left_over: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Waits until nothing is left over, and returns what is after all."""
    deadline = time.monotonic() + _TIDY_SECONDS
    while (left := left_over()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _rows(cluster: FaultCluster, query: str) -> list[tuple[object, ...]]:
    return cluster.rows(query)


def _one(cluster: FaultCluster, query: str) -> object:
    return _rows(cluster, query)[0][0]
