"""The main loop of a worker process: it runs one task after the other, each within its limits.

It is started as ``python -m resolute_serving.workers.child DESCRIPTOR MEMORY``, and receives tasks over the
socket with that descriptor. It exits when the other end of the socket is closed, even during a task.
"""

from __future__ import annotations

import math
import os
import pickle
import queue
import resource
import signal
import sys
import threading
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from resolute_serving.workers.messages import Reply, Task

_NICE = 15
_IDLE_SECONDS = 300.0
"""A process that has had nothing to do for as long gives its memory back."""
_OUT_OF_MEMORY = Reply(out_of_memory=True, last=True)


def main() -> None:
    """Does tasks until no more are sent."""
    connection = Connection(int(sys.argv[1]))
    memory = int(sys.argv[2])
    # Signals of the terminal are the service's to answer, and calls come before calculations.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), name="receive", daemon=True).start()
    while True:
        try:
            data = tasks.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            return
        reply = _do(data)
        connection.send_bytes(_packed(reply))
        if reply.last:
            return


def _receive(connection: Connection, tasks: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            tasks.put(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def _do(data: bytes) -> Reply:
    try:
        return _run(pickle.loads(data))  # noqa: S301 - the service itself sent it
    except MemoryError:
        return _OUT_OF_MEMORY
    except Exception as error:  # noqa: BLE001 - it is raised in the sender of the task
        return Reply(error=error)


def _run(task: Task) -> Reply:
    before = _resident_bytes()
    if task.cpu_seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit = math.ceil(used.ru_utime + used.ru_stime) + task.cpu_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    try:
        reply = Reply(task.work(*task.arguments))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - it is raised in the sender of the task
        reply = Reply(error=error)
    growth = _resident_bytes() - before
    return replace(reply, last=task.growth_bytes is not None and growth > task.growth_bytes)


def _resident_bytes() -> int:
    """Memory of this process; zero where the system has no ``/proc``."""
    # Not `ru_maxrss`, which begins with that of the process that started this one.
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _packed(reply: Reply) -> bytes:
    try:
        return pickle.dumps(reply)
    except MemoryError:
        return pickle.dumps(_OUT_OF_MEMORY)
    except Exception as error:  # noqa: BLE001 - values and errors that cannot be sent
        unsent = RuntimeError(f"a worker cannot send what it has: {error}")
        return pickle.dumps(Reply(error=unsent, last=reply.last))


if __name__ == "__main__":
    main()
