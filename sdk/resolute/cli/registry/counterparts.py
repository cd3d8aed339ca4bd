"""Determined's commands that do not exist here, each with its replacement.

They are listed so that none of them is taken for a prefix or a misspelling of another command.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_POOLS = "pools belong to all workspaces; `resolute resource-pool list` shows them"
_NOTEBOOK = (
    "start it by `resolute command run COMMAND`, such as jupyter lab; "
    "its log has the address: `resolute command logs ID`"
)
_SHELL = "log in to the machine; `resolute command run` runs single commands on slots"
_RETENTION = "logs are kept for as long as the operator sets; see docs/metrics-and-logs.md, Retention"
_USAGE = (
    "`resolute workspace list` shows the slots in use, `resolute experiment list --csv` when experiments ran"
)
_LAUNCHED = "trials run as the user of the operating system who started the cluster"
_DEPLOY = "`resolute up` starts a cluster on this machine; see docs/operations.md for others"

COUNTERPARTS: Mapping[str, Mapping[str, str]] = {
    "": {
        "auth": "log in with `resolute user login`, or with `resolute login --sso` by an OpenID provider",
        "d": _DEPLOY,
        "deploy": _DEPLOY,
        "notebook": _NOTEBOOK,
        "oauth": "there is no OAuth; `resolute token` makes tokens for programs",
        "res": _USAGE,
        "resources": _USAGE,
        "shell": _SHELL,
        "user-group": "`resolute rbac assign-role` gives single users a role",
    },
    "resource-pool": {
        "bindings": _NO_POOLS,
    },
    "master": {
        "cluster-message": "there are no messages to all users; tell them by other means",
    },
    "master config": {
        "set": "RESOLUTE_LOG_LEVEL sets what is logged when the server starts; see docs/operations.md",
    },
    "task": {
        "cleanup-logs": _RETENTION,
        "config": "`resolute experiment config` prints the config of a trial's experiment",
        "create": "`resolute command run -c DIR` runs code on slots",
        "fork": "`resolute experiment fork` runs an experiment once more",
        "pause": "`resolute experiment pause` pauses all trials of an experiment",
        "unpause": "`resolute experiment activate` resumes all trials of an experiment",
    },
    "dev": {
        "b": "`resolute dev list` lists the calls, `resolute dev curl` makes one",
        "bindings": "`resolute dev list` lists the calls, `resolute dev curl` makes one",
    },
    "experiment set": {
        "log-retention": _RETENTION,
    },
    "trial": {
        "set": _RETENTION,
    },
    "template": {
        "set-value": "`resolute template set` replaces the whole template",
    },
    "rbac": {
        "list-groups-roles": "there are no groups; `resolute rbac list-users-roles` lists those of a user",
    },
    "user": {
        "link-with-agent-user": _LAUNCHED,
    },
    "token": {
        "login": "pass the token in the environment variable RESOLUTE_TOKEN",
    },
    "workspace": {
        "bindings": _NO_POOLS,
        "list-pools": _NO_POOLS,
        "resource-quota": "use `resolute workspace set-quota`",
    },
}
"""By the group's path and the word: a clause that says what to do."""
