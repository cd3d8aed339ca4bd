"""The arguments of a layer: ``[[OVERRIDES...] --] (--trial TRIAL)|(SCRIPT...)``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from resolute_launch.exec.entrypoint import HARNESS, is_trial_class

AUTOHOROVOD = "--autohorovod"
_TRIAL = "--trial"
_HELP = ("-h", "--help")
_RequestT_co = TypeVar("_RequestT_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A parsed command line: what to launch."""

    script: tuple[str, ...]
    """Program and arguments of each worker."""
    overrides: tuple[str, ...] = ()
    """Arguments for the framework's own launcher; they come after the layer's and override them."""
    auto: bool = False
    """Whether one worker on one machine is to be started without any launcher."""


class ArgumentParser(Protocol[_RequestT_co]):
    """A parser of one layer's command line."""

    @property
    def name(self) -> str:
        """Its name, as in an entrypoint."""

    @property
    def usage(self) -> str:
        """The usage line."""

    @property
    def help(self) -> str:
        """What ``--help`` prints."""

    def parse(self, words: Sequence[str]) -> _RequestT_co:
        """Reads the command line.

        Raises:
            UsageError: It cannot be understood, or help was asked for.
        """


class UsageError(Exception):
    """The arguments cannot be parsed.

    Args:
        message: The error, printed below the usage; empty if only help was requested.
        exit_code: Exit code of the layer.
    """

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchArgumentParser:
    """The grammar of one layer's command line."""

    name: str
    """Its name, as after ``determined.launch.``."""
    overrides: str
    """Placeholder, in the usage line, for arguments of the framework's launcher."""
    about: str
    """One sentence for its help."""
    hidden_auto: bool = False
    """Whether there is a flag that starts a single worker without a launcher."""
    overrides_are_options: bool = False
    """Whether a first word without a dash begins the script, so that a later ``--`` is the script's own."""
    bare_trial: bool = False
    """Whether ``module:Class`` alone stands for ``--trial module:Class``."""

    @property
    def usage(self) -> str:
        """The usage line."""
        return f"usage: {self.name} [[{self.overrides}...] --] (--trial TRIAL)|(SCRIPT...)"

    @property
    def help(self) -> str:
        """What ``--help`` prints."""
        return (
            f"{self.usage}\n\n{self.about}\n\n"
            f"  {self.overrides}  arguments of the launcher underneath, up to --; they win over the layer's\n"
            "  --trial TRIAL  a Trial class, as file:Class\n"
            "  SCRIPT...  what each worker runs, with its arguments"
        )

    def parse(self, words: Sequence[str], *, python: str = sys.executable) -> Request:
        """Reads the command line.

        Args:
            words: The arguments of the layer. What stands before the first ``--`` is the launcher's.
            python: Interpreter for Trial classes and for scripts that are named by their file alone.

        Raises:
            UsageError: There is nothing to run or too much, a Trial class stands where a script should, or
                help was asked for.
        """
        is_script = self.overrides_are_options and words and not words[0].startswith("-")
        overrides, rest = ((), tuple(words)) if is_script else _split(words)
        if not overrides:
            raise_for_help(rest)
        auto = self.hidden_auto and rest[:1] == (AUTOHOROVOD,)
        if auto:
            rest = rest[1:]
        trial, script = _trial_of(rest)
        if trial is None and self.bare_trial and len(script) == 1 and is_trial_class(script[0]):
            trial, script = script[0], ()
        if trial is None and len(script) == 1 and is_trial_class(script[0]):
            raise UsageError(
                f"error: {script[0]} is not a script; did you mean --trial {script[0]}?", exit_code=2
            )
        if trial is not None:
            if script:
                raise UsageError(f"error: extra arguments to --trial: {list(script)}")
            return Request(script=(python, "-m", HARNESS, trial), overrides=overrides, auto=auto)
        command = command_of(script, python=python, remedy=f"{self.overrides} must end with --")
        return Request(script=command, overrides=overrides, auto=auto)


def raise_for_help(words: Sequence[str]) -> None:
    """Raises at arguments that ask for help.

    Raises:
        UsageError: They do.
    """
    if words and words[0] in _HELP:
        raise UsageError("", exit_code=0)


def command_of(script: Sequence[str], *, python: str, remedy: str) -> tuple[str, ...]:
    """What each worker runs.

    Args:
        script: SCRIPT and its arguments, as they stand in the command line.
        python: Interpreter of scripts that are named by their file alone.
        remedy: What to do about an option that stands in place of the script.

    Raises:
        UsageError: There is no script.
    """
    if not script:
        raise UsageError("error: empty script is not allowed")
    if script[0].startswith("-"):
        raise UsageError(f"error: unrecognized arguments: {script[0]} ({remedy})", exit_code=2)
    # A file of Python is rarely executable, and then only by luck for the interpreter of this machine.
    prefix = (python,) if script[0].endswith(".py") else ()
    return (*prefix, *script)


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if "--" not in words:
        return (), tuple(words)
    at = words.index("--")
    return tuple(words[:at]), tuple(words[at + 1 :])


def _trial_of(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    if not words:
        return None, ()
    if words[0] == _TRIAL:
        if len(words) < 2:
            raise UsageError("error: argument --trial: expected one argument", exit_code=2)
        return words[1], words[2:]
    name, equals, trial = words[0].partition("=")
    return (trial, words[1:]) if name == _TRIAL and equals else (None, words)
