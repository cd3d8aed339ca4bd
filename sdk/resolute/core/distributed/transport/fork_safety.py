"""Closes inherited connections in forked children.

A DataLoader worker that outlives its killed parent would hold the parent's TCP connections open, and the
other ranks would not detect the loss. So right after a fork, the child replaces the descriptor of each
connection by the null device. It cannot call the socket library, whose threads do not survive a fork.
"""

import os
import weakref


class Descriptors:
    """The open file descriptors of one socket, for the fork hook."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        _all.add(self)


_all: "weakref.WeakSet[Descriptors]" = weakref.WeakSet()


def _release_in_child() -> None:
    numbers = {number for descriptors in list(_all) for number in descriptors.numbers}
    if not numbers:
        return
    null = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        # Not closed: a free number could become another file, which the library would mistake for its own.
        os.dup2(null, number, inheritable=False)
    os.close(null)


os.register_at_fork(after_in_child=_release_in_child)
