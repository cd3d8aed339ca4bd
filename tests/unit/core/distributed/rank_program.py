"""One rank of a job, as tests start it: does what its argument says, and reports a line of JSON."""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from resolute.core.distributed import CollectiveError, DistributedContext
from resolute.core.distributed.group import hub_client

VICTIM = int(os.environ.get("VICTIM", "-1"))


def report(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def told(call: Callable[[], Any]) -> Any:
    """What a call returns, or the error that it raises and how long that took."""
    start = time.monotonic()
    try:
        return call()
    except CollectiveError as error:
        return {
            "error": type(error).__name__,
            "text": str(error),
            "ranks": list(error.ranks),
            "seconds": time.monotonic() - start,
        }


def connect() -> DistributedContext:
    return DistributedContext.from_torch_distributed()


def collectives() -> None:
    """Every collective once."""
    with connect() as context:
        rank = context.rank
        report(
            {
                "gather": context.gather(rank),
                "allgather": context.allgather(rank),
                "broadcast": context.broadcast(rank),
                "gather_local": context.gather_local(rank),
                "allgather_local": context.allgather_local(rank),
                "broadcast_local": context.broadcast_local(rank),
            }
        )


def large() -> None:
    """64 MB from every rank."""
    import numpy as np

    with connect() as context:
        mine = np.full(8 * 1024 * 1024, context.rank, dtype=np.float64)
        gathered = [float(array.sum()) for array in context.allgather(mine)]
        given = context.broadcast(mine)
        # The memory is ours again as soon as the call returns.
        mine[:] = -1.0
        context.allgather(None)
        report({"gathered": gathered, "given": float(given.sum()) if context.rank else 0.0})


def die() -> None:
    """The victim is killed while the others wait for it."""
    context = connect()
    if context.rank == VICTIM:
        context.allgather(None)
        os.kill(os.getpid(), signal.SIGKILL)
    # A chief may die before the result of the first has left it.
    report(told(lambda: [context.allgather(None), context.allgather(None)]))


def die_local() -> None:
    """As `die`, in a collective of one machine."""
    context = connect()
    context.allgather(None)
    if context.rank == VICTIM:
        context.allgather_local(None)
        os.kill(os.getpid(), signal.SIGKILL)
    report(told(lambda: [context.allgather_local(context.rank) for _ in range(2)]))


def die_with_children() -> None:
    """As `die`, and a forked child of the victim lives on, as a DataLoader worker might."""
    context = connect()
    if context.rank == VICTIM:
        context.allgather(None)
        if os.fork() == 0:
            # The test waits for the end of the victim's output, which a child would share.
            os.closerange(0, 3)
            while True:
                signal.pause()
        os.kill(os.getpid(), signal.SIGKILL)
    report(told(lambda: [context.allgather(None), context.allgather(None)]))


def die_while_the_chief_is_busy() -> None:
    """As `die`, and the chief is in no collective, until its standard input ends."""
    context = connect()
    context.allgather(None)
    if context.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    if context.rank == 0:
        sys.stdin.read()
    report(told(lambda: context.allgather(None)))


def crash() -> None:
    """The victim raises, and nobody closes its context."""
    context = connect()
    context.allgather(None)
    if context.rank == VICTIM:
        raise ZeroDivisionError("as scripts do")
    report(told(lambda: context.allgather(None)))


def freeze() -> None:
    """The victim is stopped, not dead."""
    context = connect()
    context.allgather(None)
    if context.rank == VICTIM:
        os.kill(os.getpid(), signal.SIGSTOP)
    report(told(lambda: context.gather(None)))


def start() -> None:
    """Only connects."""
    report(told(lambda: connect().rank))


def start_and_die() -> None:
    """The victim dies after it said hello, before all have come."""
    if int(os.environ["RANK"]) == VICTIM:
        # Called when the hub says who is missing, so it has this rank.
        setattr(hub_client, "_members", lambda *_: os.kill(os.getpid(), signal.SIGKILL))  # noqa: B010
    report(told(lambda: connect().rank))


def farewell() -> None:
    """The chief broadcasts and ends; a worker asks only afterwards."""
    context = connect()
    if context.rank == 0:
        context.broadcast({"best": "x" * 1_000_000})
        context.broadcast("last")
        report("sent")
        return
    sys.stdin.read()
    report([len(context.broadcast()["best"]), context.broadcast(), told(context.broadcast)])


def fork() -> None:
    """Children of every rank try what they must not, and must not disturb their parent."""
    context = connect()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            answer = told(lambda: context.broadcast(1))
            context.close()
            refused = isinstance(answer, dict) and answer["error"] == "ForkedContextError"
            os._exit(0 if refused else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, "the child was not refused"
        context.allgather(None)
    report(context.allgather(context.rank))


def interrupted() -> None:
    """Control-C in the middle of a collective."""
    context = connect()
    if context.rank == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            context.allgather(None)
        report(told(lambda: context.allgather(None)))
        context.close()
    else:
        report(told(lambda: sys.stdin.read() or context.allgather(None)))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
