"""Makes a fork of a parked process look like a new interpreter, and runs its script."""

from __future__ import annotations

import builtins
import contextlib
import importlib
import json
import logging
import os
import runpy
import signal
import socket
import sys
import tempfile
import time
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE, RunDirectory
from resolute_launch.container.entrypoint_process import released_variables
from resolute_launch.interpreter import _resolute_output, _resolute_stacks
from resolute_launch.warm import process_image, protocol
from resolute_launch.warm.environment import shared_environment
from resolute_launch.warm.fork.ending import end_process
from resolute_launch.warm.fork.limits import inherited
from resolute_launch.warm.preloading import preloadable

AT_EXIT: list[Callable[[], None]] = []
"""Called at the end of this process, after every exit handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The parked process at the time of the fork."""

    directory: Path
    environment: Mapping[str, str]
    """That it was started with: torch sets a variable when it is imported, which is not the run's."""
    path: tuple[str, ...]
    """``sys.path`` without the directory of a script."""
    descriptors: frozenset[int]
    """Descriptors that imports have opened."""
    modules: frozenset[str]
    pid: int
    learns: bool
    """Whether modules are learned from the first run."""
    signal_handlers: Mapping[int, Any]
    """Of the signals that the parked process handles, those of a new interpreter: some may be ignored."""

    def with_modules(self, modules: frozenset[str]) -> Origin:
        """The same with more modules."""
        return replace(self, modules=modules)


class ForkedRun:
    """One fork.

    Args:
        origin: The parked process.
        output: Descriptor for its standard output.
        errors: Descriptor for its standard error.
        control: Its socket to the supervisor.
    """

    def __init__(self, origin: Origin, *, output: int, errors: int, control: int) -> None:
        self._origin, self._output, self._errors, self._control = origin, output, errors, control
        self._exit_code = 0
        self._interrupted = False

    def run(self) -> None:
        """Runs the script, or becomes the cold start."""
        os.setsid()
        for number, handler in self._origin.signal_handlers.items():
            signal.signal(number, handler)
        os.dup2(self._output, 1)
        os.dup2(self._errors, 2)
        os.dup2(self._control, 0)
        self._close_descriptors()
        process_image.end_with_parent(signal.SIGKILL)
        if os.getppid() != self._origin.pid:
            os._exit(1)
        control = socket.socket(fileno=0)
        start = protocol.receive_message(control)
        if start is None:
            os._exit(1)
        os.chdir(start["work"])
        obstacle = self._obstacle(start)
        protocol.send_message(control, {"cold": obstacle})
        if obstacle:
            control.detach()
            _start_cold(start)
        gate = os.open(start["gate"], os.O_RDWR)
        os.write(gate, b"open\n")
        os.close(gate)
        released = control.recv(3) == b"go\n"
        control.detach()
        if not released:
            os._exit(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        # As the shell leaves them.
        environment = {"SHLVL": "0", **start["environment"], "PWD": start["work"]}
        environment.pop("_", None)
        self._run(start, environment | released_variables(RunDirectory(start["run"])))

    def _close_descriptors(self) -> None:
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names alone
            number = int(name)
            if number > 2 and number not in self._origin.descriptors:
                with contextlib.suppress(OSError):
                    os.close(number)

    def _obstacle(self, start: Mapping[str, Any]) -> str:
        """Says why this fork would not be like a new process; empty if it would."""
        if shared_environment(start["environment"]) != shared_environment(self._origin.environment):
            return "its environment is not the one that the parked process was started with"
        if start["limits"] != inherited():
            return "its limits are not those that the parked process was started with"
        return f"its code has a module {name} beside another one" if (name := self._shadowed()) else ""

    def _shadowed(self) -> str:
        """Names a module of the code whose name another one has taken."""
        names = (Path(name).stem for name in os.listdir())  # noqa: PTH208 - names alone
        return next((name for name in names if name in self._origin.modules), "")

    def _run(self, start: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        words, script = start["words"], start["script"]
        process_image.show_run_directory(environment[ENVIRONMENT_VARIABLE])
        process_image.show_command(words)
        os.environ.clear()
        os.environ.update(environment)
        # The parked process belongs to no run, and gave no answer.
        _resolute_stacks.install()
        _resolute_output.install()
        _forget_process()
        sys.orig_argv = list(words)
        main = types.ModuleType("__main__")
        main.__dict__.update(__builtins__=builtins)
        if sys.version_info < (3, 14):  # later ones make it when it is read
            main.__dict__.update(__annotations__={})
        sys.modules["__main__"] = main
        AT_EXIT.append(self._at_exit)
        arguments = start["arguments"]
        if not script:
            sys.argv = ["-m", *arguments]
            sys.path[:] = [start["work"], *self._origin.path]
            sys.modules.pop(start["module"], None)
            self._guard(lambda: runpy._run_module_as_main(start["module"]))  # type: ignore[attr-defined]  # noqa: SLF001 - what `python -m` itself runs
            return
        sys.argv = [script, *arguments]
        path = os.path.join(start["work"], script)  # noqa: PTH118 - as the interpreter joins them
        sys.path[:] = [os.path.dirname(os.path.realpath(path)), *self._origin.path]  # noqa: PTH120
        main.__dict__.update(
            __file__=path, __loader__=SourceFileLoader("__main__", path), __cached__=None, __package__=None
        )
        source = Path(path).read_bytes()
        self._guard(lambda: exec(compile(source, path, "exec", dont_inherit=True), main.__dict__))  # noqa: S102

    def _guard(self, script: Any) -> None:
        """Runs the script and shows what it raises without the frames of this module."""
        importlib.invalidate_caches()
        try:
            script()
        except SystemExit as end:
            code = end.code
            self._exit_code = 0 if code is None else code & 0xFF if isinstance(code, int) else 1
            raise
        except BaseException as failure:  # noqa: BLE001 - as the interpreter does
            self._exit_code = 1
            self._interrupted = isinstance(failure, KeyboardInterrupt)
            trace = failure.__traceback__
            while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__):
                trace = trace.tb_next
            sys.excepthook(type(failure), failure.with_traceback(trace), trace)
            raise SystemExit(1) from None

    def _at_exit(self) -> None:
        """Runs after all exit handlers of the script."""
        learned = self._origin.directory / protocol.LEARNED
        if self._origin.learns and not learned.exists():
            with contextlib.suppress(OSError):
                names = preloadable(
                    beside=self._origin.modules, outside=Path(os.environ[ENVIRONMENT_VARIABLE])
                )
                scratch = learned.with_suffix(f".{os.getpid()}")
                scratch.write_text(json.dumps(names))
                scratch.rename(learned)
        end_process(self._exit_code, interrupted=self._interrupted, keep=self._origin.modules)


def _start_cold(start: Mapping[str, Any]) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execve(start["shell"][0], start["shell"], start["environment"])  # noqa: S606 - the run's own shell


def _forget_process() -> None:
    """Resets what modules remember of the process that imported them."""
    # What imports want done at their process's end is the parked process's: others use what it may remove.
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]  # noqa: SLF001 - no other way
        finalizer.atexit = False
    tempfile.tempdir = None
    logging._startTime = time.time()  # type: ignore[attr-defined]  # noqa: SLF001 - no other way
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        multiprocessing.current_process().authkey = os.urandom(32)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
