"""The meaning and the remedy of each error reason, for `resolute help errors` and docs/errors.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorReason:
    """The meaning and the remedy of one error reason."""

    meaning: str
    """What is wrong, as a sentence."""
    remedy: str
    """What to do, as sentences."""


ERROR_REASONS: Mapping[str, ErrorReason] = {
    "INVALID_ARGUMENT": ErrorReason(
        "A value of the call is wrong: malformed, out of range, or not allowed together with another.",
        "The message names the field and what was expected. Correct it; repeating the call does not help.",
    ),
    "INVALID_CONFIG": ErrorReason(
        "The experiment config is wrong. The message lists every fault with the path of its field.",
        "Correct the fields; docs/config.md lists all of them. `resolute search preview CONFIG` checks a "
        "config without submitting it.",
    ),
    "NOT_FOUND": ErrorReason(
        "The object does not exist, was deleted, or belongs to a workspace in which you have no role.",
        "List what there is (`resolute experiment list --all`, `resolute trial list ID`, `resolute model "
        "list`). Check the cluster (`resolute version`) and the user (`resolute user whoami`): objects of "
        "workspaces that you may not see are reported as missing.",
    ),
    "ALREADY_EXISTS": ErrorReason(
        "Another object has this name or identifier already.",
        "Choose another name, or change the existing object instead of creating one.",
    ),
    "FAILED_PRECONDITION": ErrorReason(
        "Something that the call needs is missing, or the state of the object does not allow it yet.",
        "The message says what is missing. Do that first, then repeat the call.",
    ),
    "ILLEGAL_TRANSITION": ErrorReason(
        "The state of the object does not allow this change: for example an experiment that has ended cannot "
        "be paused.",
        "`resolute experiment describe ID` shows the state. An experiment that ended goes on with "
        "`resolute experiment continue ID`; docs/lifecycle.md has all states and changes.",
    ),
    "CLIENT_TOO_OLD": ErrorReason(
        "The client is older than what this cluster accepts.",
        "`resolute version` prints both versions. Install the version of the cluster: "
        "`pip install '.'` in the commit or tag of the repository that the cluster was installed from.",
    ),
    "RUN_SUPERSEDED": ErrorReason(
        "A later run of the same trial has started, for example because the machine of this one was not "
        "in contact for too long. What the earlier run reported before is kept.",
        "Nothing: the later run continues from the latest checkpoint. If it happens often, check the network "
        "and the load of the machine: docs/operations.md.",
    ),
    "CONFLICT": ErrorReason(
        "Somebody or something else changed the object at the same time.",
        "Read the object again, then repeat the change if it is still wanted.",
    ),
    "QUOTA_EXCEEDED": ErrorReason(
        "A quota of the workspace, a limit on sizes, or the disk is used up.",
        "The message names the limit. `resolute workspace describe NAME` shows quotas and use, and "
        "`resolute workspace set-quota` changes them. For code that is too large, list data in `.detignore`; "
        "for a full disk see docs/operations.md, Full disks.",
    ),
    "UNAUTHENTICATED": ErrorReason(
        "No token was sent, or one that has expired, was revoked, or belongs to another cluster.",
        "Log in with `resolute user login`, or set RESOLUTE_TOKEN to a token of this cluster. The "
        "operator's token is the file `token` in the home of the cluster; `resolute up` writes it.",
    ),
    "PERMISSION_DENIED": ErrorReason(
        "You are known, and your role does not allow this call.",
        "`resolute rbac my-permissions` lists your roles; docs/access.md says which role allows what. Ask an "
        "administrator of the workspace for one.",
    ),
    "UNAVAILABLE": ErrorReason(
        "The service, its database or its store does not answer at the moment. Nothing was lost; calls that "
        "change something can be repeated safely.",
        "Check the address (`resolute version`) and that the cluster runs (`resolute status`, or "
        "`resolute up`). Where its certificate is not trusted, `resolute user login` shows it and asks. "
        "`resolute doctor` looks for causes on the machine of the cluster.",
    ),
    "DEADLINE_EXCEEDED": ErrorReason(
        "The work was not done in time: the machine or its disk is busy, or the network is slow.",
        "Repeat the call. If it stays so, `resolute doctor` on the machine of the cluster and the metrics of "
        "docs/operations.md say which part is slow.",
    ),
    "DATA_LOSS": ErrorReason(
        "Stored bytes are not what was written: a file of a checkpoint or a record is damaged or incomplete.",
        "`resolute checkpoint verify UUID` names the damaged files. Use another checkpoint, or restore the "
        "store from a backup; look for faults of the disk.",
    ),
    "UNIMPLEMENTED": ErrorReason(
        "The cluster does not know this call: it is older than the client.",
        "`resolute version` prints both versions. Upgrade the cluster, or use a client of its version.",
    ),
    "INTERNAL": ErrorReason(
        "A defect of the server. Its log has the traceback, under the correlation id in the message.",
        "Report the defect with that part of the log. For a trial, `resolute trial support-bundle ID` "
        "collects what is known.",
    ),
}
"""By the name in ``ErrorReason`` of the contract, without its prefix."""
