"""The open streams, which the gateway ends with a request to reconnect when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from resolute.errors import UnavailableError


class OpenStreams:
    """The open streams of a gateway."""

    def __init__(self) -> None:
        self._calls: set[Any] = set()
        self._stopping = False

    @contextmanager
    def opened(self, call: Any) -> Iterator[None]:
        """Counts a call to a service as open while the block runs, and ends it afterwards.

        Raises:
            UnavailableError: The gateway stops.
        """
        self._calls.add(call)
        try:
            yield
        except asyncio.CancelledError as cancelled:
            if self._stopping:
                raise UnavailableError("the gateway stops; connect again") from cancelled
            raise
        finally:
            self._calls.discard(call)
            call.cancel()

    def end(self) -> None:
        """Ends all of them."""
        self._stopping = True
        for call in list(self._calls):
            call.cancel()
