"""The directory that a trial is reproduced in."""

from __future__ import annotations

import json
import shlex
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


def write_directory(recipe: Recipe, directory: Path, services: Services) -> None:
    """Writes code, config, info, lock, the checkpoint that the trial started from, and the command.

    Raises:
        FailedPreconditionError: The directory holds something.
        DataLossError: The checkpoint arrived damaged.
    """
    if directory.exists() and any(directory.iterdir()):
        raise FailedPreconditionError(f"{directory} is not empty; name another directory with -o")
    directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    directory = directory.resolve()
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
    variables = {
        "PYTHONUNBUFFERED": "1",
        "DET_TASK_TYPE": TRIAL,
        "DET_TRIAL_ID": str(trial.id),
        "DET_EXPERIMENT_ID": str(trial.experiment_id),
        "DET_TRIAL_SEED": str(trial.seed),
        "DET_TRIAL_RUN_ID": "1",
        "DET_STEPS_COMPLETED": "0",
        "DET_HPARAMS": json.dumps(trial.hparams),
        **({} if recipe.gpu else {"CUDA_VISIBLE_DEVICES": ""}),
        **configured_variables(recipe.config, slot_kind="gpu" if recipe.gpu else "cpu", agent={}),
    }
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    return f"""#!/usr/bin/env bash
# Runs trial {trial.id} as on its cluster, without it. PYTHON names the interpreter; default python3.
set -e
here=$(cd "$(dirname "$0")" && pwd)
python=${{PYTHON:-python3}}
unset RESOLUTE_RUN_DIR RESOLUTE_MASTER DET_MASTER
export RESOLUTE_INFO_DIR="$here/info"
# The kernel starts no program with a longer variable.
if [ "$(wc -c < "$here/config.json")" -lt 100000 ]; then
  export DET_EXPERIMENT_CONFIG="$(cat "$here/config.json")"
fi
{exports}
export PYTHONPATH="$("$python" -m resolute_launch.installation)${{PYTHONPATH:+:$PYTHONPATH}}"
cd "$here/code"
if [ -f ./startup-hook.sh ]; then . ./startup-hook.sh </dev/null; fi
exec "$python" -m resolute_launch.exec.run_entrypoint </dev/null
"""


def _lock(recipe: Recipe) -> str:
    assert recipe.environment is not None
    head = f"# Packages of trial {recipe.trial.id}, with Python {recipe.environment.python_version}.\n"
    packages = sorted(recipe.environment.packages.items())
    return head + "".join(f"{name}=={version}\n" for name, version in packages)


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"
