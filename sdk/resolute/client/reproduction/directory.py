"""The directory in which a trial is reproduced."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from resolute.client.downloads.checkpoint_files import download
from resolute.client.downloads.model_definition import save_model_definition, unpack_model_definition
from resolute.client.reproduction.recipe import Recipe
from resolute.client.services import Services
from resolute.errors import FailedPreconditionError
from resolute.info import TRIAL, ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo
from resolute.runtime.environment_variables import configured_variables
from resolute.runtime.local_task import LocalTask

CHECKPOINTS = "checkpoints"
"""Where the reproduced trial writes its checkpoints."""
SCRIPT = "run.sh"
"""Runs the trial."""
_PRIVATE = 0o700
"""A config may hold secrets."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSETTABLE = ("BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID")
"""Variables that bash does not let a script set."""
_LONGEST_VARIABLE = 100_000
"""Bytes: the kernel starts no program with a longer one than 128 KiB."""


def write_directory(recipe: Recipe, directory: Path, services: Services) -> None:
    """Writes code, config, info, lock, the checkpoint that the trial started from, and the command.

    Raises:
        FailedPreconditionError: The directory holds something.
        DataLossError: The checkpoint arrived damaged.
    """
    if directory.exists() and any(directory.iterdir()):
        raise FailedPreconditionError(f"{directory} is not empty; name another directory with -o")
    directory = directory.resolve()
    directory.parent.mkdir(parents=True, exist_ok=True)
    # What takes time happens in a directory of its own, so that an interruption leaves no part of it.
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}-", dir=directory.parent) as scratch:
        _write(recipe, Path(scratch), services)
        directory.mkdir(mode=_PRIVATE, exist_ok=True)
        directory.chmod(_PRIVATE)
        for path in Path(scratch).iterdir():
            shutil.move(path, directory)


def _write(recipe: Recipe, directory: Path, services: Services) -> None:
    code = directory / "code"
    if recipe.has_code:
        with tempfile.TemporaryDirectory(prefix="resolute-") as scratch:
            archive = save_model_definition(
                services.experiments, recipe.trial.experiment_uuid, Path(scratch) / "code.tgz"
            )
            unpack_model_definition(archive, code)
    code.mkdir(exist_ok=True)
    (directory / CHECKPOINTS).mkdir()
    if recipe.source is not None:
        target = directory / CHECKPOINTS / recipe.source.uuid
        download(recipe.source, target, registry=services.checkpoints)
    (directory / "config.json").write_text(_json(recipe.config))
    if recipe.source_code is not None:
        (directory / "source.json").write_text(_json(asdict(recipe.source_code)))
    if recipe.environment is not None:
        (directory / "environment.json").write_text(_json(asdict(recipe.environment)))
        (directory / "requirements.lock").write_text(_lock(recipe))
    info = directory / "info"
    info.mkdir()
    _info(recipe).write(info)
    script = directory / SCRIPT
    script.write_text(_script(recipe))
    script.chmod(_PRIVATE)


def _info(recipe: Recipe) -> ClusterInfo:
    trial = recipe.trial
    return ClusterInfo(
        master_url="",
        cluster_id=recipe.cluster_id,
        agent_id="local",
        slot_ids=list(range(recipe.slots)),
        task_id=f"trial-{trial.uuid}",
        allocation_id=f"reproduction-{trial.uuid}",
        session_token="",
        task_type=TRIAL,
        latest_checkpoint=None if recipe.source is None else recipe.source.uuid,
        trial_info=TrialInfo(
            trial_id=trial.id,
            experiment_id=trial.experiment_id,
            trial_seed=trial.seed,
            hparams=trial.hparams,
            config=recipe.config,
            steps_completed=0,
            trial_run_id=1,
        ),
        rendezvous_info=RendezvousInfo(["127.0.0.1"], 0, [recipe.slots]),
        resources_info=ResourcesInfo([]),
        local=LocalTask(checkpoints=f"../{CHECKPOINTS}", lengths=recipe.lengths),
    )


def _script(recipe: Recipe) -> str:
    trial = recipe.trial
    hparams = json.dumps(trial.hparams)
    variables = {
        "PYTHONUNBUFFERED": "1",
        "DET_TASK_TYPE": TRIAL,
        "DET_TRIAL_ID": str(trial.id),
        "DET_EXPERIMENT_ID": str(trial.experiment_id),
        "DET_TRIAL_SEED": str(trial.seed),
        "DET_TRIAL_RUN_ID": "1",
        "DET_STEPS_COMPLETED": "0",
        **({"DET_HPARAMS": hparams} if len(hparams) < _LONGEST_VARIABLE else {}),
        **({} if recipe.gpu else {"CUDA_VISIBLE_DEVICES": ""}),
        **configured_variables(recipe.config, slot_kind="gpu" if recipe.gpu else "cpu", agent={}),
    }
    pairs = {name: shlex.quote(f"{name}={value}") for name, value in variables.items() if name}
    exported = [name for name in pairs if _IDENTIFIER.fullmatch(name) and name not in _UNSETTABLE]
    exports = "\n".join(f"export {pairs[name]}" for name in exported)
    # What a shell cannot export is given to the entrypoint, as on the cluster; the startup hook does without.
    others = "".join(f" {pair}" for name, pair in pairs.items() if name not in exported)
    return f"""#!/usr/bin/env bash
# Runs trial {trial.id} as on its cluster, without it. PYTHON names the interpreter; default python3.
set -e
here=$(cd "$(dirname "$0")" && pwd)
python=${{PYTHON:-python3}}
unset RESOLUTE_RUN_DIR RESOLUTE_MASTER DET_MASTER
export RESOLUTE_INFO_DIR="$here/info"
# The kernel starts no program with a longer variable.
if [ "$(wc -c < "$here/config.json")" -lt {_LONGEST_VARIABLE} ]; then
  export DET_EXPERIMENT_CONFIG="$(cat "$here/config.json")"
fi
{exports}
export PYTHONPATH="$("$python" -m resolute_launch.installation)${{PYTHONPATH:+:$PYTHONPATH}}"
cd "$here/code"
if [ -f ./startup-hook.sh ]; then . ./startup-hook.sh </dev/null; fi
exec env{others} "$python" -m resolute_launch.exec.run_entrypoint </dev/null
"""


def _lock(recipe: Recipe) -> str:
    assert recipe.environment is not None
    head = f"# Packages of trial {recipe.trial.id}, with Python {recipe.environment.python_version}.\n"
    packages = sorted(recipe.environment.packages.items())
    return head + "".join(f"{name}=={version}\n" for name, version in packages)


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"
