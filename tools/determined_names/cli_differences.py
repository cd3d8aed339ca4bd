"""What commands and options of the documented command line do differently here.

By the command, or the command and its option. All others do the same, or are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

_TASKS = "the tasks are the trials, by their numbers"
_ROLES = "there are four roles: ClusterAdmin, WorkspaceAdmin, Editor, Viewer"
_ROWS = "the most rows, also without `--pages 1`"
_POLICIES = "`tasks` is refused: commands and TensorBoard are experiments, whose policies count for them"

_IN_POOLS = "machines are named `POOL/NUMBER`, or by the number with `--resource-pool`; slots have numbers"

DIFFERENCES: Mapping[str, str] = {
    "agent disable": f"{_IN_POOLS}; trials checkpoint and go on elsewhere",
    "agent enable": _IN_POOLS,
    "agent list": "machines are named `POOL/NUMBER`, numbered from 0",
    "checkpoint describe": "takes several, separated by commas",
    "checkpoint download --mode": "`master` is the checkpoints service",
    "config-policies delete": _POLICIES,
    "config-policies describe": _POLICIES,
    "config-policies set": _POLICIES,
    "dev auth-token": "prints the token that calls carry, wherever it comes from",
    "dev curl": "takes a gRPC call, such as `ClusterService/GetCluster`, and its request as `-d JSON`",
    "experiment continue": "says what will be kept and asks, unless `--yes` is given",
    "experiment create --local": "runs the entrypoint in a copy of the code, and needs `--test-mode`",
    "experiment create --test-mode": "trains one batch on the cluster; with `--local`, here",
    "experiment list --limit": _ROWS,
    "experiment list-trials --limit": _ROWS,
    "experiment move": "goes to another workspace only when it has ended",
    "experiment set gc-policy": "deletes at once what it does not keep; the config of the experiment stays",
    "experiment wait --polling-interval": "has no effect: the cluster tells at once",
    "job list": "jobs are experiments, by their numbers",
    "job list --table": "has no effect: tables are the default",
    "job list --limit": _ROWS,
    "job update": "jobs are experiments, by their numbers",
    "job update --ahead-of": "gives the next higher priority than that of the other",
    "job update --behind-of": "gives the next lower priority than that of the other",
    "job update-batch": "takes `ID.priority=N`, `ID.weight=N` and `ID.max_slots=N`",
    "master config show": "prints the settings of this server, by its own names",
    "master info": "prints version, address, identity, slots and problems",
    "master logs": "prints the last 1000 lines of the process of the experiments service",
    "model describe": "lists all versions; `--version` takes one",
    "preview-search": "is `search preview`",
    "rbac assign-role": _ROLES,
    "rbac describe-role": _ROLES,
    "rbac list-roles": _ROLES,
    "rbac list-roles --limit": _ROWS,
    "rbac unassign-role": _ROLES,
    "slot disable": f"{_IN_POOLS}; a trial checkpoints and goes on elsewhere",
    "slot enable": _IN_POOLS,
    "slot list": "slots are numbered from 0",
    "task kill": _TASKS,
    "task list": _TASKS,
    "task logs": _TASKS,
    "tensorboard start --no-browser": "a browser is opened only from a terminal",
    "tensorboard start --trial-ids": "several are separated by commas",
    "template list": "shows the names of the fields; with `--details`, the fields",
    "token create --expiration-days": "at most 365, and 30 if it is not given",
    "token list --show-inactive": "revoked tokens are always shown, expired ones never",
    "trial describe --limit": _ROWS,
    "trial support-bundle": "the archive has the log, and JSON of trial, experiment, metrics, checkpoints",
    "user create": "creates an editor; `--admin` or `--role` give another role",
    "user edit --admin": "`false` makes an admin an editor",
    "user logout --all": "deletes the tokens of all clusters on this machine",
    "workspace list-members": "lists users by their roles in the workspace and in the cluster",
}
