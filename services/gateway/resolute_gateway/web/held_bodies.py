"""Limits the bytes of request bodies in memory: in all, and for one address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from starlette.types import Message, Receive

from resolute_gateway.web.callers import current_caller
from resolute_serving.auth.refusals import client_address

MAX_BYTES = 256 * 1024 * 1024
MAX_BYTES_OF_ADDRESS = MAX_BYTES // 2


class HeldBodies:
    """Counts bytes of bodies as they arrive. A declared length does not count.

    Args:
        most: Most bytes of all requests in progress.
        most_of_address: Most bytes of the requests of one address.
    """

    def __init__(self, *, most: int = MAX_BYTES, most_of_address: int = MAX_BYTES_OF_ADDRESS) -> None:
        self._most = most
        self._most_of_address = most_of_address
        self._held: Counter[str] = Counter()

    @contextmanager
    def counted(self, receive: Receive) -> Iterator[Receive]:
        """Gives the parts of a body, which count until the block ends.

        A part beyond the bounds is not taken; reading it raises what the protocol library answers with.

        Args:
            receive: Gives them uncounted.
        """
        address, own = client_address(current_caller.get()), 0

        async def receive_counted() -> Message:
            nonlocal own
            message = await receive()
            size = len(message.get("body", b""))
            self._require_room(address, size, own=own)
            self._held[address] += size
            own += size
            return message

        try:
            yield receive_counted
        finally:
            self._held[address] -= own
            if not self._held[address]:
                del self._held[address]

    def _require_room(self, address: str, size: int, *, own: int) -> None:
        # One call alone always fits: otherwise it would be refused for ever.
        total, of_address = self._held.total(), self._held[address]
        full = total > own and total + size > self._most
        if full or (of_address > own and of_address + size > self._most_of_address):
            whose = "" if full else f" of {address}"
            raise ConnectError(Code.UNAVAILABLE, f"the gateway holds many large requests{whose}; try again")
