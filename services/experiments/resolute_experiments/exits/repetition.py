"""Decides whether a failure would occur again, so that another run would be pointless.

Only errors of the script itself are considered. Ends by signals, failed launches, losses, and errors that
name a network, a device or a time limit may not occur in the next run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resolute_experiments.exits.policy import Exit
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.runs import Run

_FAILED_LAUNCH = 125
_SIGNALLED = 128
_SHOWN = 200
_ERROR = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*(?:Error|Exception|Failure|Exit))(?::.*)?"
    r"|.*: can't open file .*|.*command not found.*|\S+: error: .*|.*No module named .*"
)
"""Lines that say what failed: an exception's last line, and what Python, a shell and argparse say."""
_NEVER_MENDED = re.compile(
    r"(ModuleNotFound|Import|Syntax|Indentation|Tab|Name|UnboundLocal)Error\b.*"
    r"|.*: can't open file .*|.*command not found.*|\S+: error: .*|.*No module named .*"
)
"""Errors of the code and the environment: nothing but a change of these takes them away."""
_WITHOUT_METRIC = re.compile(
    r"RuntimeError: Search method is configured to use metric .* the validation gave .*"
)
"""What a Trial class says whose validation lacks the metric (``resolute.trials.search_metric``)."""
_PASSING = re.compile(
    r"connect|network|resolve|resolution|unreachable|time[d]? ?out|timeout|temporar|unavailable|try again"
    r"|too many requests|reset by peer|broken pipe|ssl|urlopen|http|socket|rendezvous|address already in use"
    r"|input/output error|stale file handle|nccl|gloo|cuda error|ecc|xid|hip error",
    re.IGNORECASE,
)
_OF_THIS_RUN = re.compile(r"0x[0-9a-fA-F]+|(?:/[^\s/'\"]+)+/")
"""What differs from run to run though the error is the same: addresses, and the directories of files."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The failure of a run: its last step and its error."""

    run: int
    """Its number."""
    text: str
    """Its last lines."""
    steps: int | None
    """Steps that it reached; 0 if it reported none, None where that is not known."""

    @property
    def error(self) -> str:
        """The line that says what failed; empty if none does."""
        lines = (line.strip() for line in reversed(self.text.splitlines()))
        return next((line for line in lines if _ERROR.fullmatch(line)), "")

    @property
    def kind(self) -> str:
        """What two runs have in common that ended alike."""
        return _OF_THIS_RUN.sub("", self.error)


def why_not_again(now: Failure, exit_: Exit, *, earlier: Sequence[Run]) -> str:
    """Says why a failure is not repeated.

    Args:
        now: How the run failed.
        exit_: How its processes ended.
        earlier: The runs of the trial before it, by number.

    Returns:
        The reason for people; empty if another run may do better.
    """
    own = 0 < exit_.exit_code < _SIGNALLED and exit_.exit_code != _FAILED_LAUNCH
    if exit_.lost or exit_.forced or not own or not now.error or now.steps is None:
        return ""
    if _PASSING.search(now.error):
        return ""
    if _WITHOUT_METRIC.fullmatch(now.error):
        return "not repeated: validations give no searcher.metric until code or config is changed"
    before = [failure_of(run) for run in earlier if run.outcome is RunOutcome.FAILED]
    if before and before[-1].kind == now.kind and before[-1].steps == now.steps:
        where = f"at step {now.steps}" if now.steps else "before the first report"
        return f"not repeated: same error {where} in runs {before[-1].run} and {now.run}"
    began = [past for past in earlier if past.outcome is not RunOutcome.LOST]
    if _NEVER_MENDED.fullmatch(now.error) and not now.steps and not any(map(_reached, began)):
        return f"not repeated: {now.error[:_SHOWN]!r} before the first report comes again until it is mended"
    return ""


def failure_of(run: Run) -> Failure:
    """How an earlier run failed."""
    return Failure(run=run.run, text=run.failure, steps=_reached(run))


def _reached(run: Run) -> int | None:
    return None if run.kept_steps is None or run.lost_steps is None else run.kept_steps + run.lost_steps
