"""Words of the documented command line that are not commands here, each with what to use instead.

They are known so that none of them is taken for the prefix or the misspelling of another command.
"""

from __future__ import annotations

from collections.abc import Mapping

_NO_POOLS = "machines are not divided into pools; `resolute status` shows machines and slots"
_NO_INTERACTIVE = "only trials run on slots; start it yourself on a machine of the cluster"
_RETENTION = "logs are kept for as long as the operator sets; see docs/metrics-and-logs.md, Retention"
_STATUS = "`resolute status` shows the machines and their slots"

COUNTERPARTS: Mapping[str, Mapping[str, str]] = {
    "": {
        "agent": _STATUS,
        "a": _STATUS,
        "auth": "log in with `resolute user login`; there is no login through other services",
        "cmd": "only trials run on slots; make the command the entrypoint of an experiment",
        "command": "only trials run on slots; make the command the entrypoint of an experiment",
        "config-policies": "`resolute template` shares settings, `resolute workspace set-quota` limits slots",
        "cp": "`resolute template` shares settings, `resolute workspace set-quota` limits slots",
        "d": "`resolute up` starts a cluster on this machine; see docs/operations.md for others",
        "deploy": "`resolute up` starts a cluster on this machine; see docs/operations.md for others",
        "dev": "programs call the services by gRPC (docs/clients.md) or by the Python client",
        "master": "`resolute status`, `resolute version` and `resolute doctor` tell about the cluster",
        "notebook": _NO_INTERACTIVE,
        "oauth": "there is no OAuth; `resolute token` makes tokens for programs",
        "res": "`resolute workspace list` shows the slots in use, `resolute status` all slots",
        "resource-pool": _NO_POOLS,
        "resources": "`resolute workspace list` shows the slots in use, `resolute status` all slots",
        "rp": _NO_POOLS,
        "s": _STATUS,
        "shell": _NO_INTERACTIVE,
        "slot": _STATUS,
        "task": "the only tasks are trials: `resolute job list`, `resolute trial logs`",
        "user-group": "`resolute rbac assign-role` gives single users a role",
    },
    "experiment": {
        "delete-tb-files": "`resolute experiment delete` removes them with the experiment",
    },
    "experiment set": {
        "gc-policy": "`resolute checkpoint gc` deletes the checkpoints that a policy does not keep",
        "log-retention": _RETENTION,
    },
    "trial": {
        "set": _RETENTION,
        "support-bundle": "`resolute trial describe --json`, `resolute trial logs` and "
        "`resolute experiment download-model-def` have what it holds",
    },
    "model": {
        "move": "`resolute model set --workspace` moves a model",
    },
    "template": {
        "create": "`resolute template set` creates a template or replaces it",
        "set-value": "`resolute template set` replaces the whole template",
    },
    "rbac": {
        "list-groups-roles": "there are no groups; `resolute rbac list-users-roles` lists those of a user",
    },
    "job": {
        "update-batch": "use `resolute job update` for each experiment",
    },
    "user": {
        "edit": "`resolute user set-role`, `activate`, `deactivate` and `change-password` change a user",
        "link-with-agent-user": "trials run as the user of the operating system who started the cluster",
        "rename": "names of users are permanent; create another user",
    },
    "token": {
        "describe": "`resolute token list` shows every token",
        "edit": "tokens are permanent; revoke it and create another",
        "login": "pass the token in the environment variable RESOLUTE_TOKEN",
    },
    "workspace": {
        "bindings": _NO_POOLS,
        "edit": "names of workspaces are permanent; `resolute workspace set-quota` changes quotas",
        "list-members": "`resolute workspace role list` shows roles in one, `resolute user list` in all",
        "list-pools": _NO_POOLS,
        "list-projects": "use `resolute project list WORKSPACE`",
        "resource-quota": "use `resolute workspace set-quota`",
    },
    "project": {
        "edit": "use `resolute project set`",
        "list-experiments": "use `resolute experiment list`, or the pages",
    },
}
"""By the group's path and the word: a clause that says what to do."""
