"""Runs the supervisor of a Ray actor, and sends its remaining data.

The actor writes to a pipe: the launch order as a line of JSON, then commands, ``stop`` or ``kill``, one a
line. The end of the pipe means the end of the actor. The shim answers with lines of JSON: ``{"word": ...}``
with the termination message of the run, and finally ``{"over": ...}``, whether all remaining data was sent.
Any other output is the reason why no supervisor started.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.lock import RunLock
from resolute.contracts.run.shim_files import KILL
from resolute.contracts.run.termination_message import BEGAN, write_message
from resolute.errors import ConflictError
from resolute_launch.node.shim import end_what_is_left, keep_supervisor, place_order

RUN = "run"
"""Folder of the container's: the run directory."""
_OVERLAYS = "resolute-overlays-"
"""Folder beside those of containers, by the user: what startup hooks have installed."""
_KEPT = "kept"
"""File of the container's folder that its actor locks for its shim, with which the lock ends."""
_TAIL_CHARACTERS = 2000


def keep(folder: Path, *, requests: TextIO, answers: TextIO, descriptor: int | None = None) -> int:
    """Keeps one supervisor to its end, and sends what it left; where one was kept before, ends that.

    Args:
        folder: Holds all of the container, on this node. It is removed once everything was sent.
        requests: The pipe from the actor.
        answers: The pipe to it.
        descriptor: The lock of the folder, if the process that started this one has taken it.

    Returns:
        0 if everything has arrived.
    """
    if descriptor is not None:
        RunLock.inherit(descriptor, folder / _KEPT)
    elif not _lock(folder):
        # The shim that had it meanwhile has sent everything.
        _tell(answers, over=True)
        return 0
    run = RunDirectory(folder / RUN)
    if run.launch_file.exists():
        # The shim before this one was lost, and what it kept has no owner.
        _end_supervisor(run)
        end_what_is_left(run)
    else:
        order = requests.readline()
        if not order:
            # The actor ended before it sent what to start.
            shutil.rmtree(folder)
            return 0
        run.path.mkdir(mode=0o700, exist_ok=True)
        LaunchOrder.from_json(json.loads(order)).write(run.launch_file)
        place_order(run, os.environ, overlays=folder.with_name(f"{_OVERLAYS}{os.getuid()}"))
        _keep(run, requests)
    _tell(answers, word=_termination_message(run))
    # Not before: a node waits here for as long as it trains, and that is large.
    from resolute_launch.supervisor.orphan_upload import main as upload

    with run.log_file.open("ab") as log:
        # A pipe without a reader must not end the sender.
        os.dup2(log.fileno(), 2)
    lost = run.supervisor_file.exists() and not run.exit_file.exists()
    code = upload([str(run.path), *(["--note-late-lines"] if lost else [])])
    if code == 0:
        shutil.rmtree(folder, ignore_errors=True)
    _tell(answers, over=code == 0)
    return code


def keep_leftovers(directory: Path, prefix: str) -> None:
    """Keeps in processes of their own what shims left that died with this machine; what is empty is removed.

    Args:
        directory: Where the folders of containers lie.
        prefix: Begins the names of those of one cluster.
    """
    for folder in directory.glob(f"{glob.escape(prefix)}*"):
        try:
            lock = RunLock.acquire(folder / _KEPT)
        except (ConflictError, FileNotFoundError):
            # Its shim lives, or has just sent everything.
            continue
        if not RunDirectory(folder / RUN).launch_file.exists():
            # The machine died before anything of the container began.
            shutil.rmtree(folder, ignore_errors=True)
        elif not os.fork():
            with Path(os.devnull).open("r+") as null:
                os._exit(keep(folder, requests=null, answers=null, descriptor=lock.descriptor))
        lock.release()


def _lock(folder: Path) -> bool:
    """Locks a folder for as long as this process lives; waits for who has locked it.

    Returns:
        Whether the folder is there.
    """
    try:
        descriptor = os.open(folder / _KEPT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return folder.exists()


def _keep(run: RunDirectory, requests: TextIO) -> None:
    words = set[str]()

    def listen() -> None:
        for line in requests:
            words.add(line.strip())
        # The caller is gone, and the run counts as lost: nothing of it may go on.
        words.add(KILL)

    threading.Thread(target=listen, name="actor", daemon=True).start()
    keep_supervisor(run, lambda: tuple(words))


def _end_supervisor(run: RunDirectory) -> None:
    with suppress(ValueError):
        supervisor = ProcessIdentity.from_json(read_json(run.supervisor_file))
        if supervisor is not None:
            supervisor.send(signal.SIGKILL)


def _termination_message(run: RunDirectory) -> str:
    with suppress(ValueError):
        if record := ExitRecord.read(run.exit_file):
            return write_message(record)
    if run.supervisor_file.exists():
        return BEGAN
    return run.log_file.read_text(errors="replace")[-_TAIL_CHARACTERS:] if run.log_file.exists() else ""


def _tell(answers: TextIO, **answer: object) -> None:
    with suppress(BrokenPipeError):
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()
