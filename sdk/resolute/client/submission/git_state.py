"""The git work tree that code is submitted from: its commit, and what was changed since."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resolute.client.submission.ignore_rules import IgnoreRules
from resolute.runtime.redaction import Secrets

VARIABLE = "RESOLUTE_NO_GIT"
"""Set to 1, nothing of git is read or sent."""
MAX_DIFF_BYTES = 256 * 1024
_MAX_BRANCH = 1000
_MAX_FILES = 1000
_SECONDS = 10.0
_LARGEST_FILE = 1024 * 1024
"""Of larger files it is only said that they differ."""
_SECRET_NAME = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|KEY|CREDENTIALS?)$")
_SHORTEST_SECRET = 8
"""Characters: shorter values occur in text that has nothing to do with them."""
# What the repository's own settings name must neither run programs nor change what a diff looks like.
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", f"core.bigFileThreshold={_LARGEST_FILE}")
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")


@dataclass(frozen=True, kw_only=True)
class GitState:
    """A work tree at one moment."""

    commit: str
    """40 or 64 hex digits."""
    branch: str
    """Empty for none."""
    diff: str
    """How the submitted files differ from the commit, secrets masked; empty for no difference."""
    truncated: bool = False
    """Whether the diff was longer."""


def known_secrets(token: str, environ: Mapping[str, str]) -> Secrets:
    """Returns what must not be in a diff: a token, and the values of variables with the names of secrets."""
    named = [
        value
        for name, value in environ.items()
        if _SECRET_NAME.search(name.upper()) and len(value) >= _SHORTEST_SECRET
    ]
    return Secrets(token, *named)


def read_git_state(model_definition: Path | None, *, secrets: Secrets) -> GitState | None:
    """Reads the state of the work tree that a model definition lies in.

    Args:
        model_definition: The directory or file; None for none.
        secrets: Masked in the diff.

    Returns:
        The state; None without git, outside of a work tree, or if the user wants none to be read.
    """
    if model_definition is None or os.environ.get(VARIABLE, "") not in ("", "0"):
        return None
    root = model_definition if model_definition.is_dir() else model_definition.parent
    try:
        head = _git(root, "rev-parse", "--verify", "HEAD").decode().strip()
        branch = _git(root, "rev-parse", "--abbrev-ref", "HEAD").decode(errors="replace").strip()
        files = _changed_files(root, model_definition)
        diff = _git(root, *_DIFF, "HEAD", "--", *files) if files else b""
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    text = secrets.mask(diff).decode(errors="replace").encode()
    return GitState(
        commit=head,
        branch="" if branch == "HEAD" else branch[:_MAX_BRANCH],
        diff=text[:MAX_DIFF_BYTES].decode(errors="ignore"),
        truncated=len(text) > MAX_DIFF_BYTES,
    )


def _changed_files(root: Path, model_definition: Path) -> Sequence[str]:
    """Returns the changed files that are submitted, relative to the root."""
    rules = IgnoreRules(root)
    only = "." if model_definition.is_dir() else f"./{model_definition.name}"
    names = _git(root, *_DIFF, "--name-only", "--relative", "-z", "HEAD", "--", only)
    found = [name.decode(errors="surrogateescape") for name in names.split(b"\0") if name]
    submitted = (name for name in found if not _skipped(rules, name))
    return [f":(literal){name}" for name in submitted][:_MAX_FILES]


def _skipped(rules: IgnoreRules, name: str) -> bool:
    parts = name.split("/")
    above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return rules.skips(name, directory=False) or any(rules.skips(path, directory=True) for path in above)


def _git(root: Path, *arguments: str) -> bytes:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", *_SETTINGS, "-C", str(root), *arguments]
    return subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=_SECONDS,
    ).stdout
