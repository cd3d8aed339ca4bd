"""Programs that end what they started also when they are asked to end."""

from __future__ import annotations

import signal
import sys

_ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)


def end_cleanly() -> None:
    """Lets blocks of this program end when it is asked to end, as on Ctrl-C; asking again does nothing."""

    def end(number: int, _: object) -> None:
        for each in _ASKED_TO_END:
            # Not SIG_IGN, which the processes that the blocks start would inherit.
            signal.signal(each, lambda *_: None)
        sys.exit(128 + number)

    for number in _ASKED_TO_END:
        signal.signal(number, end)
