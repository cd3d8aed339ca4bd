"""An HTTP connection with timeouts for receiving headers and for sending responses."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from resolute_gateway.web.answers import connection_end

HEADER_SECONDS = 10.0
"""How long a client may take for all headers, from the opening of the connection or its first byte."""
MAX_HEADER_BYTES = 64 * 1024
"""Most bytes of the request line and all headers."""
UNREAD_SECONDS = 60.0
"""How long an answer may wait for a client before it has read any of it."""


class BoundedConnection(HttpToolsProtocol):
    """Uvicorn's connection, with additional limits on time and bytes.

    The timer runs while the client has begun a request that is not handled yet. Uvicorn's own timer closes an
    idle connection between two requests.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._header_bytes: int | None = None
        self._unfinished = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to wait for headers."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the timers."""
        super().connection_lost(exc)
        self._stop_timer()
        self._stop_unread_timer()

    def data_received(self, data: bytes) -> None:
        """Reads what came, within the limits on headers."""
        handled = self.cycle is not None and not self.cycle.response_complete
        if not handled and self._timer is None:
            self._start_timer()
        # Where these bytes begin with the rest of a body, those of the next headers are not known.
        headers_alone = self._header_bytes is not None or not self._unfinished
        super().data_received(data)
        if headers_alone and self._header_bytes is not None:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self._end(431, f"the request line and the headers have over {MAX_HEADER_BYTES} bytes")

    def on_message_begin(self) -> None:
        """Begins to count the bytes of headers."""
        super().on_message_begin()
        self._header_bytes = 0
        self._unfinished = True

    def on_headers_complete(self) -> None:
        """Hands the request over."""
        self._header_bytes = None
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Notes that the body is whole."""
        self._unfinished = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the rest of the request, or of the next one where that has begun."""
        super().on_response_complete()
        if self._unfinished and self._timer is None:
            self._start_timer()

    def pause_writing(self) -> None:
        """Waits for a client that reads too little."""
        super().pause_writing()
        if self._unread_timer is None:
            self._wait_for_reader()

    def resume_writing(self) -> None:
        """Goes on."""
        super().resume_writing()
        self._stop_unread_timer()

    def _wait_for_reader(self, last: int | None = None) -> None:
        """Looks from time to time whether the client reads; ends the connection of one that does not."""
        unread = self.transport.get_write_buffer_size()
        if last is not None and unread >= last:
            self.transport.abort()
            return
        self._unread_timer = self.loop.call_later(UNREAD_SECONDS, self._wait_for_reader, unread)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._too_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _too_late(self) -> None:
        self._timer = None
        self.transport.close()

    def _end(self, status: int, message: str) -> None:
        if not self.transport.is_closing():
            self.transport.write(connection_end(status, message))
            self.transport.close()
