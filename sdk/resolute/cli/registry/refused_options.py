"""Options of Determined's commands that are refused here, each with its replacement."""

from __future__ import annotations

from collections.abc import Mapping

import click

_NO_POOLS = "configs name the pool by `resources.resource_pool`"
_NO_AGENT_USER = "trials run as the user of the operating system who started the cluster"
_NO_GROUPS = "there are no groups of users; give roles to users, with --username-to-assign"
_NO_KUBERNETES = "there are no namespaces; `resolute workspace set-quota` limits what a workspace may use"
_STORAGE = "name the storage in a template (`resolute template set`) or in the config"
_REMOTE = "users of an OpenID provider are created when they first `resolute login --sso`"

_OF_A_WORKSPACE = {
    "--agent-uid": _NO_AGENT_USER,
    "--agent-user": _NO_AGENT_USER,
    "--agent-gid": _NO_AGENT_USER,
    "--agent-group": _NO_AGENT_USER,
    "--checkpoint-storage-config": _STORAGE,
    "--checkpoint-storage-config-file": _STORAGE,
    "--default-compute-pool": _NO_POOLS,
    "--default-aux-pool": _NO_POOLS,
}
_OF_THE_ROOT = {"-m": "HOST:PORT", "--master": "HOST:PORT", "-u": "NAME", "--user": "NAME"}

REFUSED_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "command run": {
        "-v": "commands run as processes of the machine, and see its directories",
        "--volume": "commands run as processes of the machine, and see its directories",
    },
    "dev curl": {
        "-x": "it calls by gRPC, and prints what it calls and nothing else",
    },
    "experiment create": {
        "-p": "trials run as processes of the machine, whose ports need no publishing",
        "--publish": "trials run as processes of the machine, whose ports need no publishing",
    },
    "job list": {
        "-p": _NO_POOLS,
        "--resource-pool": _NO_POOLS,
    },
    "job update": {
        "--resource-pool": _NO_POOLS,
    },
    "project create": {
        "--key": "projects have no keys; experiments have numbers",
    },
    "project edit": {
        "--key": "projects have no keys; experiments have numbers",
    },
    "rbac assign-role": {
        "-g": _NO_GROUPS,
        "--group-name-to-assign": _NO_GROUPS,
    },
    "rbac unassign-role": {
        "-g": _NO_GROUPS,
        "--group-name-to-assign": _NO_GROUPS,
    },
    "task kill": {
        "--root": "tasks are trials, and no trial is part of another",
    },
    "template create": {
        "-w": "templates belong to the whole cluster",
        "--workspace-name": "templates belong to the whole cluster",
    },
    "user create": {
        "--password": "everybody on a machine can read command lines; use `resolute user change-password`",
        "--remote": _REMOTE,
    },
    "user edit": {
        "--display-name": "users have one name; --username changes it",
        "--remote": _REMOTE,
    },
    "workspace create": {
        **_OF_A_WORKSPACE,
        "--cluster-name": _NO_KUBERNETES,
        "-n": _NO_KUBERNETES,
        "--namespace": _NO_KUBERNETES,
        "--auto-create-namespace": _NO_KUBERNETES,
        "--auto-create-namespace-all-clusters": _NO_KUBERNETES,
        "--resource-quota": "`resolute workspace set-quota --slots` limits the slots of a workspace",
    },
    "workspace edit": _OF_A_WORKSPACE,
}
"""By the command's path and the option: a clause that says what to do."""


def explained(error: click.NoSuchOption) -> click.UsageError:
    """Says what to use instead of an option of Determined, or where one of the root stands."""
    names, context = [], error.ctx
    while context is not None and context.parent is not None:
        names.append(context.info_name or "")
        context = context.parent
    path = " ".join(reversed(names))
    option = error.option_name.partition("=")[0]
    clause = REFUSED_OPTIONS.get(path, {}).get(option)
    if clause is None and path and option in _OF_THE_ROOT:
        return click.UsageError(
            f"{option} stands before the command: `resolute {option} {_OF_THE_ROOT[option]} {path}`.",
            error.ctx,
        )
    if clause is None:
        return error
    return click.UsageError(f"`resolute {path}` has no {error.option_name}: {clause}.", error.ctx)
