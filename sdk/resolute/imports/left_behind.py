"""What has no place here and stays on the other cluster, counted for the report."""

from __future__ import annotations

from resolute.errors import FailedPreconditionError, NotFoundError
from resolute.imports.master import Master
from resolute.imports.report import Report

_LISTED = {
    "webhooks": "webhooks: endpoints of alerts take their place (docs/alerts.md)",
    "notebooks": "notebooks",
    "shells": "shells",
    "commands": "commands",
    "tensorboards": "TensorBoards: `det tensorboard start` shows the metrics that came",
}
"""By the path that lists them, which is the field of the answer too."""
_ENDED = frozenset({"STATE_TERMINATED", "STATE_TERMINATING"})


def remark_left_behind(master: Master, report: Report) -> None:
    """Counts what the other cluster lists and no import can bring."""
    for name, text in _LISTED.items():
        try:
            found = master.get(f"/api/v1/{name}").get(name) or []
        except (NotFoundError, FailedPreconditionError):  # the release lacks them, or does not show them
            continue
        report.remark(text, sum(item.get("state") not in _ENDED for item in found))
    _remark_policies_of_tasks(master, report)
    report.remark("pins; usage by the hour; audit logs; tasks that have ended")
    report.remark("decisions of searches: configs say how they searched, and metrics what came of it")


def _remark_policies_of_tasks(master: Master, report: Report) -> None:
    try:
        policies = master.get("/api/v1/config-policies/global/NTSC").get("configPolicies")
    except NotFoundError:
        return
    report.remark("config policies of notebooks, shells and commands", int(bool(policies)))
