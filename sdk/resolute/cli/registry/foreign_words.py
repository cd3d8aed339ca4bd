"""Commands of other programs, each with the equivalent command here."""

from __future__ import annotations

from collections.abc import Mapping

_CREATE = "`resolute experiment create` submits an experiment, `resolute run` a script"
_LIST = "`resolute experiment list` lists experiments, `resolute job list` the queue"
_PAGES = (
    "`resolute up` prints the address of the pages; `resolute experiment describe` and `trial plot` show runs"
)

_STEER = "`resolute experiment {0}` is for an experiment, `resolute trial {0}` for a trial"
_OF_EXPERIMENTS = "`resolute experiment {0}` is for an experiment"

FOREIGN_WORDS: Mapping[str, str] = {
    # kubectl, docker and queues
    "apply": _CREATE,
    "compare": "`resolute experiment compare` compares trials, `resolute diff` two of them",
    "cancel": _OF_EXPERIMENTS.format("cancel"),
    "create": _CREATE,
    "delete": _OF_EXPERIMENTS.format("delete"),
    "describe": "`resolute experiment describe` and `resolute trial describe` show one",
    "new": "`resolute init` writes a config and a script",
    "exec": "only trials run on slots; `resolute run` runs a script",
    "download": _STEER.format("download"),
    "get": _LIST,
    "kill": _STEER.format("kill"),
    "kubectl": _LIST,
    "list": _LIST,
    "ls": _LIST,
    "nodes": "`resolute agent list` lists the machines",
    "pause": _OF_EXPERIMENTS.format("pause"),
    "ps": _LIST,
    "qstat": "`resolute job list` lists the queue",
    "sbatch": _CREATE,
    "scancel": "`resolute experiment kill` stops an experiment",
    "squeue": "`resolute job list` lists the queue",
    "start": "`resolute up` starts a cluster on this machine",
    "stop": "`resolute experiment cancel` ends an experiment, `resolute down` the cluster of this machine",
    "submit": _CREATE,
    "wait": _OF_EXPERIMENTS.format("wait"),
    # wandb, mlflow, ray, sky
    "agents": "`resolute agent list` lists the machines",
    "artifact": "`resolute checkpoint` and `resolute model` keep files",
    "artifacts": "`resolute checkpoint` and `resolute model` keep files",
    "experiments": "the word is `resolute experiment`",
    "jobs": _LIST,
    "launch": _CREATE,
    "login": "`resolute user login` logs in",
    "logout": "`resolute user logout` logs out",
    "memory": "`resolute slot list` shows the slots",
    "mlflow": _PAGES,
    "models": "the word is `resolute model`",
    "ray": "`resolute up` starts a cluster, `resolute run` runs a script on it",
    "resume": _OF_EXPERIMENTS.format("activate"),
    "runs": "`resolute trial list` lists the trials of an experiment",
    "server": "`resolute up` starts a cluster on this machine",
    "sweep": "a config with a searcher is a sweep: `resolute experiment create`; see docs/searches.md",
    "train": "`resolute run` runs a script, `resolute experiment create` an experiment",
    "tune": "a config with a searcher tunes: `resolute experiment create`; see docs/searches.md",
    "trials": "the word is `resolute trial`",
    "ui": _PAGES,
    "wandb": _PAGES,
}
"""By the word; it counts only if it is typed in full."""
