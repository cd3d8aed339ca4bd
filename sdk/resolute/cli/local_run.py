"""``resolute experiment create --local --test-mode``: runs the entrypoint here, without a cluster."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from resolute.cli.display.output import format_value
from resolute.client.downloads.model_definition import unpack_model_definition
from resolute.client.submission.packing import pack
from resolute.errors import InvalidConfigError
from resolute.runtime.environment_variables import configured_variables
from resolute.runtime.sampling import sample

_TRIAL_CLASS = re.compile(r"[a-zA-Z0-9_.]+:[a-zA-Z0-9_]+")
_CLUSTER_VARIABLES = ("DET_", "RESOLUTE_RUN_DIR", "RESOLUTE_INFO_DIR", "RESOLUTE_COLLECTIVE_")


def run_locally(
    config: Mapping[str, Any], *, model_definition: Path | None, includes: Sequence[Path], limit: int
) -> int:
    """Runs the entrypoint in a temporary copy of the code, with sampled hyperparameters, and waits for it.

    Args:
        config: The config as its author wrote it.
        model_definition: The code.
        includes: What comes beside it.
        limit: Most bytes of the code.

    Returns:
        The entrypoint's exit code; 128 + n when signal n ended it.

    Raises:
        InvalidConfigError: The config names no entrypoint, or hyperparameters that cannot be sampled.
        ModelDefinitionError: The code cannot be packed.
    """
    command = _command(config.get("entrypoint"))
    seed = _seed(config)
    hparams = sample(_section(config, "hyperparameters"), seed=seed)
    click.echo(f"running the entrypoint here with {format_value(hparams) or 'no hyperparameters'}")
    with tempfile.TemporaryDirectory(prefix="resolute-local-") as scratch:
        work = Path(scratch) / "work"
        packed = Path(scratch) / "code.tgz"
        with pack(model_definition, includes, limit=limit) as archive:
            packed.write_bytes(b"".join(archive.chunks()))
        unpack_model_definition(packed, work)
        sys.stdout.flush()
        environment = _environment(config, hparams, seed)
        environment["XDG_DATA_HOME"] = scratch  # where checkpoints go off cluster: a test leaves none
        code = subprocess.run(command, cwd=work, env=environment, check=False).returncode
    code = 128 - code if code < 0 else code
    if code == 0:
        click.echo("the local test passed")
    else:
        click.echo(f"the local test failed: the entrypoint exited with {code}", err=True)
    return code


def _command(entrypoint: Any) -> list[str]:
    if isinstance(entrypoint, list) and entrypoint:
        return [str(part) for part in entrypoint]
    if not isinstance(entrypoint, str) or not entrypoint.strip():
        raise InvalidConfigError("entrypoint: found nothing to run; expected a command, as text or as a list")
    if not _TRIAL_CLASS.fullmatch(entrypoint.strip()):
        return ["/bin/sh", "-c", entrypoint]
    return [sys.executable, "-m", "resolute_launch.harness", entrypoint.strip()]


def _environment(config: Mapping[str, Any], hparams: Mapping[str, Any], seed: int) -> dict[str, str]:
    _section(config, "environment")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_CLUSTER_VARIABLES)}
    # Scripts say `python3` and mean the one that has what they import.
    path = os.pathsep.join([str(Path(sys.executable).parent), inherited.get("PATH", os.defpath)])
    paths = [*compat_paths(), *filter(None, [inherited.get("PYTHONPATH")])]
    return {
        **inherited,
        "PATH": path,
        **configured_variables(config, slot_kind="cpu", agent=os.environ),
        "PYTHONPATH": os.pathsep.join(paths),
        "DET_HPARAMS": json.dumps(hparams),
        "DET_EXPERIMENT_CONFIG": json.dumps(config),
        "DET_TRIAL_SEED": str(seed),
    }


def compat_paths() -> list[str]:
    """Finds the directory of the package ``determined``: in the launcher, or beside it in a checkout."""
    spec = importlib.util.find_spec("resolute_launch")
    if spec is None or spec.origin is None:
        return []
    package = Path(spec.origin).parent
    candidates = (package / "compat", package.parent.parent / "compat")
    return [str(path) for path in candidates if (path / "determined" / "__init__.py").is_file()][:1]


def _seed(config: Mapping[str, Any]) -> int:
    seed = _section(config, "reproducibility").get("experiment_seed", 0)
    return seed if isinstance(seed, int) else 0


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name) or {}
    if not isinstance(section, Mapping):
        raise InvalidConfigError(f"{name}: found {section!r}; expected a map")
    return section
