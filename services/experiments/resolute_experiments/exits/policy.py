"""Decides the effect of a run's end on its trial: a pure function of settled facts, as a list of rules.

The run is first fenced in the searcher and the checkpoints service, so that it can no longer change the
facts. Their answers are among the facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from resolute_experiments.states import STOPPING_EXPERIMENTS, ExperimentState, RunEvent, TrialEvent

KILLED, TERMINATED = 137, 143
"""Exit codes of what SIGKILL and SIGTERM ended."""
MOST_BARREN_ENDS = 3
"""So many times in a row a run on preemptible machines may end unannounced without a new checkpoint."""


class EarlyExit(Enum):
    """The reason why a trial's own code ended early."""

    NONE = ""
    INVALID_HP = "INVALID_HP"
    INIT_INVALID_HP = "INIT_INVALID_HP"
    USER_REQUESTED_STOP = "USER_REQUESTED_STOP"


@dataclass(frozen=True, kw_only=True)
class Exit:
    """The exit of a run's processes."""

    lost: bool = False
    """Machine or supervisor was lost, so that its end was not observed."""
    exit_code: int = 0
    """Exit code of the entrypoint."""
    forced: bool = False
    """Whether it was ended because it had not obeyed its signal in time."""
    acknowledged: bool = False
    """Whether it exited because of a signal, or because it had no operation left."""
    early_exit: EarlyExit = EarlyExit.NONE
    """The reason that its code gave."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The position of the trial in its search when its run was fenced."""

    uses_operations: bool
    """Whether the search works by operations; if not, an exit 0 is the trial's own end."""
    completed: bool
    """Whether the current operation was completed."""
    closed: bool
    """Whether the search closed the trial."""

    @property
    def stopped(self) -> bool:
        """Whether the search stopped the trial by a signal."""
        return self.closed and not self.uses_operations


@dataclass(frozen=True, kw_only=True)
class TrialContext:
    """The platform's state of the trial at the time of the decision."""

    experiment: ExperimentState
    """State of the experiment."""
    kill_requested: bool
    """Whether the trial itself was killed on request."""
    restarts: int
    """Restarts so far."""
    max_restarts: int
    """Restarts that the config allows."""
    retries_cancelled: bool = False
    """Whether a log policy matched a line of the run and forbids restarts."""
    comes_again: bool = False
    """Whether the same failure is sure to come again."""
    on_preemptible: bool = False
    """Whether its config says that its machines may be taken away (``resources.preemptible``)."""
    taken_back: bool = False
    """Whether the guard of the experiment found a bad report of the run, and lets the trial go back."""
    barren_ends: int = 0
    """Runs in a row, with this one, that ended unannounced and left no checkpoint of a later step."""


@dataclass(frozen=True, kw_only=True)
class ExitFacts:
    """All facts about an ended run."""

    exit: Exit
    """How its processes ended."""
    operation: Operation
    """The answer of the searcher's seal."""
    situation: TrialContext
    """The platform's side."""

    @property
    def killed(self) -> bool:
        """Whether a person ended it at once."""
        killed = self.situation.experiment is ExperimentState.STOPPING_KILLED
        return killed or self.situation.kill_requested

    @property
    def early_exit(self) -> EarlyExit:
        """Why its own code ended it; reasons of lost runs do not count."""
        return EarlyExit.NONE if self.exit.lost else self.exit.early_exit

    @property
    def done(self) -> bool:
        """Whether nothing is left to do: its last operation is complete, or it has none."""
        return not self.operation.uses_operations or (self.operation.completed and self.operation.closed)

    @property
    def taken_away(self) -> bool:
        """Whether its machine took it away without a word, as preemptible machines may.

        One that ends so again and again with nothing to show for it is judged as on any other machine: the
        code may be the cause, such as one that the kernel kills for lack of memory.
        """
        ended_so = self.exit.lost or self.exit.exit_code in {KILLED, TERMINATED}
        excused = self.situation.barren_ends <= MOST_BARREN_ENDS and not self.situation.retries_cancelled
        return self.situation.on_preemptible and ended_so and excused

    @property
    def taken_back(self) -> bool:
        """Whether the trial goes back; what the search counts as done stays done."""
        return self.situation.taken_back and not self.operation.completed and not self.operation.stopped

    @property
    def left_early(self) -> bool:
        """Whether it agreed to exit before its operation was complete."""
        return self.exit.acknowledged and not self.operation.completed and not self.operation.stopped


@dataclass(frozen=True)
class Decision:
    """The decision about the run and the trial."""

    run: RunEvent
    """What happens to the run."""
    trial: TrialEvent
    """What happens to the trial."""


@dataclass(frozen=True)
class OutcomeRule:
    """A rule for the outcome of a run."""

    when: str
    """For people."""
    event: RunEvent
    """What happens to the run."""
    predicate: Callable[[ExitFacts], bool] | None = None
    """Whether it did; None for whatever is left."""


OUTCOME_RULES = (
    OutcomeRule("a person killed the trial or its experiment", RunEvent.KILL, lambda f: f.killed),
    OutcomeRule(
        "its code reported that it was done",
        RunEvent.COMPLETE,
        lambda f: f.early_exit is EarlyExit.USER_REQUESTED_STOP,
    ),
    OutcomeRule(
        "its code refused its hyperparameters",
        RunEvent.INVALIDATE,
        lambda f: f.early_exit in {EarlyExit.INVALID_HP, EarlyExit.INIT_INVALID_HP},
    ),
    OutcomeRule(
        "its guard found a bad report, and ended it or lets its trial go back",
        RunEvent.PREEMPT,
        lambda f: f.taken_back or (f.situation.taken_back and f.exit.exit_code != 0),
    ),
    OutcomeRule(
        "its machines are preemptible, and it was lost or ended by SIGTERM or SIGKILL, with steps gained",
        RunEvent.PREEMPT,
        lambda f: f.taken_away,
    ),
    OutcomeRule("its machine or its supervisor was lost", RunEvent.LOSE, lambda f: f.exit.lost),
    # Anyone who is ended for being slow has not failed: a pause must not use up a restart.
    OutcomeRule(
        "it was ended by force after the deadline of its signal",
        RunEvent.PREEMPT,
        lambda f: f.exit.exit_code != 0 and f.exit.forced,
    ),
    OutcomeRule(
        "it was asked to exit, and the SIGTERM of its machine ended it before it could",
        RunEvent.PREEMPT,
        lambda f: f.exit.exit_code == TERMINATED and f.left_early,
    ),
    OutcomeRule("it exited with another code than 0", RunEvent.FAIL, lambda f: f.exit.exit_code != 0),
    OutcomeRule(
        "it exited with 0, acknowledged, its operation incomplete",
        RunEvent.PREEMPT,
        lambda f: f.left_early,
    ),
    OutcomeRule("it exited with 0 otherwise", RunEvent.COMPLETE),
)
"""How a run ended: the first that holds."""


@dataclass(frozen=True)
class TrialRule:
    """A rule for the effect of a run's end on its trial."""

    when: str
    """The case, for people."""
    event: TrialEvent
    """What happens to the trial."""
    run: RunEvent | None = None
    """How the run must have ended; None for any end."""
    predicate: Callable[[ExitFacts], bool] | None = None
    """What must be true besides; None for nothing."""

    def applies(self, facts: ExitFacts, run: RunEvent) -> bool:
        """Whether it is this case."""
        return self.run in {None, run} and (self.predicate is None or self.predicate(facts))


TRIAL_RULES = (
    TrialRule("a person killed the trial or its experiment", TrialEvent.RUN_CANCELED, RunEvent.KILL),
    TrialRule(
        "its code reported that it was done",
        TrialEvent.RUN_EXITED_EARLY,
        predicate=lambda f: f.early_exit is EarlyExit.USER_REQUESTED_STOP,
    ),
    TrialRule(
        "its code refused its hyperparameters",
        TrialEvent.RUN_INVALID,
        predicate=lambda f: f.early_exit is EarlyExit.INVALID_HP,
    ),
    TrialRule(
        "its code refused its hyperparameters before it trained",
        TrialEvent.RUN_INVALID_AT_INIT,
        predicate=lambda f: f.early_exit is EarlyExit.INIT_INVALID_HP,
    ),
    # However it left, it is not to train any more: a failure on the way out is no reason to begin again.
    TrialRule(
        "its search had stopped it by a signal",
        TrialEvent.RUN_FINISHED,
        predicate=lambda f: f.operation.stopped,
    ),
    TrialRule(
        "it exited with 0 and nothing is left to do",
        TrialEvent.RUN_FINISHED,
        RunEvent.COMPLETE,
        lambda f: f.done,
    ),
    TrialRule(
        "its experiment is stopping",
        TrialEvent.RUN_CANCELED,
        predicate=lambda f: f.situation.experiment in STOPPING_EXPERIMENTS,
    ),
    TrialRule(
        "its guard found a bad report: it goes back",
        TrialEvent.RUN_RESUMES,
        predicate=lambda f: f.taken_back,
    ),
    TrialRule(
        "it completed its operation, and the search has no other yet",
        TrialEvent.RUN_IDLE,
        RunEvent.COMPLETE,
        lambda f: f.operation.completed,
    ),
    TrialRule(
        "it exited with 0 in the middle of its operation, unasked",
        TrialEvent.RUN_EXITED_EARLY,
        RunEvent.COMPLETE,
    ),
    TrialRule(
        "it failed, and a log policy cancels its restarts",
        TrialEvent.RUN_FAILED_BY_POLICY,
        RunEvent.FAIL,
        lambda f: f.situation.retries_cancelled,
    ),
    TrialRule(
        "it failed, and the same failure would come again",
        TrialEvent.RUN_FAILED,
        RunEvent.FAIL,
        lambda f: f.situation.comes_again,
    ),
    TrialRule(
        "it failed, and no restart is left",
        TrialEvent.RUN_FAILED,
        RunEvent.FAIL,
        lambda f: f.situation.restarts >= f.situation.max_restarts,
    ),
    TrialRule("it failed, and restarts are left", TrialEvent.RUN_RETRIED, RunEvent.FAIL),
    TrialRule("it was preempted or lost", TrialEvent.RUN_RESUMES),
)
"""What the end of a run means for its trial: the first that applies."""


def decide_exit(facts: ExitFacts) -> Decision:
    """Decides what the end of a run means."""
    run = next(rule.event for rule in OUTCOME_RULES if rule.predicate is None or rule.predicate(facts))
    return Decision(run, next(rule.event for rule in TRIAL_RULES if rule.applies(facts, run)))
