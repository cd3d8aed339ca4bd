"""Checks by file names whether the script of an entrypoint is part of the model definition.

There is no warning if a startup hook, a mount, an image, the shell or an installed package may provide the
script.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from pathlib import PurePosixPath

from resolute.errors import Violation
from resolute_config.experiment import ExperimentConfig
from resolute_config.sections.entrypoint import is_trial_class

_HOOK = "startup-hook.sh"
_SHELL = re.compile(r"[;|&$<>(){}*?~`\\\n]|\bcd\b")
"""What makes a shell do more than start one program."""
_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_SHELLS = frozenset({"bash", "sh"})
_FLAGS = frozenset({"-u", "-O", "-B", "-x", "-e"})
"""Options after which the script still follows; after any other it may be a module or a command."""
_LAUNCH_LAYERS = ("determined.launch.", "resolute_launch.")
_COMPARED = 2000
"""How many names are looked through for one that may be meant."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")


def missing_script(config: ExperimentConfig, files: Collection[str], *, runs_here: bool) -> Violation | None:
    """Returns what is wrong with the entrypoint; None if no fault was found.

    Args:
        config: The whole config.
        files: Paths of the files that come with it; empty for none at all.
        runs_here: Whether its pool runs trials on this machine with the packages of this service, so that it
            is known which modules are installed.
    """
    if not files or _HOOK in files or config.bind_mounts:
        return None
    for script in _scripts(config.entrypoint):
        path = PurePosixPath(script)
        if not path.is_absolute() and ".." not in path.parts and not _may_be_there(path, files):
            return _violation(f"the script {script!r}", path.as_posix(), files)
    for module in _modules(config.entrypoint) if runs_here and not _sets_python_path(config) else ():
        top = module.partition(".")[0]
        if (
            not {top, f"{top}.py"}.intersection(files)
            and not _any_below(top, files)
            and not _is_installed(top)
        ):
            return _violation(f"the module {module!r}", f"{top}.py", files)
    return None


def _violation(what: str, wanted: str, files: Collection[str]) -> Violation:
    # Each comparison takes a tenth of a millisecond, and a directory may hold very many files.
    near = difflib.get_close_matches(wanted, sorted(files)[:_COMPARED], n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else "submit it, and see that no .detignore leaves it out"
    return Violation("entrypoint", f"{what} is not in the directory that was submitted; {hint}")


def _may_be_there(path: PurePosixPath, files: Collection[str]) -> bool:
    name = path.as_posix()
    # A folder may be run. An entry without files below may be a link to a folder.
    return (
        name == "."
        or name in files
        or _any_below(name, files)
        or any(above in files and not _any_below(above, files) for above in map(str, path.parents[:-1]))
    )


def _any_below(directory: str, files: Collection[str]) -> bool:
    return any(name.startswith(f"{directory}/") for name in files)


def _sets_python_path(config: ExperimentConfig) -> bool:
    variables = config.environment.environment_variables
    return any(
        variable.partition("=")[0] == "PYTHONPATH"
        for variable in (*variables.cpu, *variables.cuda, *variables.rocm)
    )


def _is_installed(top: str) -> bool:
    # Of a name without dots this imports nothing.
    try:
        return find_spec(top) is not None
    except (ImportError, ValueError):
        return True


def _modules(entrypoint: str | tuple[str, ...] | None) -> Iterator[str]:
    if isinstance(entrypoint, str) and is_trial_class(entrypoint):
        yield entrypoint.partition(":")[0]


def _scripts(entrypoint: str | tuple[str, ...] | None) -> Iterator[str]:
    if entrypoint is None or is_trial_class(entrypoint):
        return
    if isinstance(entrypoint, str):
        try:
            words = [] if _SHELL.search(entrypoint) else shlex.split(entrypoint)
        except ValueError:
            return
    else:
        words = list(entrypoint)
    script = _script_of(words)
    if script:
        yield script


def _script_of(words: Sequence[str]) -> str:
    """The script that a command runs; empty where that is not plain."""
    rest = list(words)
    while rest and (_ASSIGNMENT.fullmatch(rest[0]) or rest[0] == "exec"):
        rest.pop(0)
    if not rest:
        return ""
    program = rest.pop(0)
    if program in _SHELLS or _PYTHON.fullmatch(program):
        while rest and rest[0] in _FLAGS:
            rest.pop(0)
        if rest[:1] == ["-m"] and "--" in rest and rest[1].startswith(_LAUNCH_LAYERS):
            return _script_of(rest[rest.index("--") + 1 :])
        return rest[0] if rest and not rest[0].startswith("-") else ""
    return program if "/" in program or program.endswith(".py") else ""
