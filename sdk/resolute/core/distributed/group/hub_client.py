"""A rank's client of the hub of a group."""

import contextlib
import os
import secrets
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence

import zmq

from resolute.core.distributed.errors import (
    CollectiveAuthError,
    CollectiveError,
    CollectiveOrderError,
    CollectiveTimeoutError,
    MalformedFrameError,
)
from resolute.core.distributed.group.collectives import ROOT, Cause, Termination
from resolute.core.distributed.group.handshake import Hello
from resolute.core.distributed.group.parameters import GroupParameters
from resolute.core.distributed.transport.bundle import unbundle
from resolute.core.distributed.transport.messages import (
    NO_SESSION,
    Codec,
    Kind,
    Message,
    Op,
    pack_fields,
    unpack_fields,
)
from resolute.core.distributed.transport.payload import LARGE, NO_PAYLOAD, Frame, Payload
from resolute.core.distributed.transport.sockets import (
    ConnectionMonitor,
    ZmqContext,
    open_socket,
    readable,
    tracked,
)

# How long to sleep at most, to look whether the hub's thread still runs.
_POLL = 1.0
# How often to say hello: until somebody answers, and then to hear who is missing.
_FIRST_HELLO_INTERVAL = 0.05
_HELLO_INTERVAL = 1.0
# A refusal may come from the run before, on its way out.
_REFUSAL_TIMEOUT = 10.0
# How long a goodbye may take to leave.
_CLOSE_TIMEOUT = 0.5
# The root judges timeouts, and names the silent; this much later the root itself is the silent one.
_HUB_GRACE = 15.0
_SENT_POLL = 0.02


class HubClient:
    """Communicates with the hub of a group, from one thread at a time.

    Args:
        context: Owner of the sockets.
        endpoint: Address of the hub.
        parameters: What the members agree on.
        index: Index of this rank in the group.
        hub_alive: Returns whether the hub still runs, if it is a thread of this process.
    """

    def __init__(
        self,
        context: ZmqContext,
        endpoint: str,
        parameters: GroupParameters,
        *,
        index: int,
        hub_alive: Callable[[], bool] = lambda: True,
    ) -> None:
        self.index = index
        self.size = len(parameters.membership)
        self._endpoint = endpoint
        self._membership = parameters.membership
        self._codec = parameters.codec
        self._timeout = parameters.timeout
        self._hub_alive = hub_alive
        self._hello = Hello(
            member=index,
            size=self.size,
            job=parameters.job,
            place=f"pid {os.getpid()} on {socket.gethostname()}",
            nonce=secrets.token_hex(16),
        )
        self._session = NO_SESSION
        self._serial = 0
        self._inbox: deque[Message] = deque()
        self._termination: Termination | None = None
        # Nothing is sent without a connection: it would reach another process that listens there later.
        self._connected = endpoint.startswith("inproc:")
        self._dealer = open_socket(context, zmq.DEALER, ipv6=parameters.ipv6)
        self._monitor = ConnectionMonitor(self._dealer)
        self._poller = zmq.Poller()
        self._poller.register(self._dealer, zmq.POLLIN)
        self._poller.register(self._monitor.socket, zmq.POLLIN)
        try:
            self._dealer.connect(endpoint)
        except zmq.ZMQError as error:
            self._disconnect()
            raise CollectiveError(
                f"{self._membership.describe([ROOT])} cannot be at {endpoint}: {error}"
            ) from error

    def join(self, timeout: float, *, parent: "HubClient | None" = None) -> None:
        """Waits until all members have come.

        Args:
            timeout: Seconds to wait.
            parent: A group that all of them are in already: when that one ends, they will not come.

        Raises:
            CollectiveTimeoutError: Some have not come; it names them.
            CollectiveError: The hub does not let this process in, or a member died meanwhile.
        """
        start = next_hello = time.monotonic()
        missing: list[int] = []
        refusals: list[tuple[float, str]] = []
        while True:
            now = time.monotonic()
            # Once there is a hub, its error says more.
            limit = start + timeout + (_HUB_GRACE if missing else 0.0)
            if refusals:
                limit = min(limit, refusals[0][0] + _REFUSAL_TIMEOUT)
            if now >= limit:
                raise self._join_error(timeout, missing, refusals[-1][1] if refusals else None)
            if self._connected and now >= next_hello:
                self._send(Message(Kind.HELLO, self.index, frames=pack_fields(self._hello.to_fields())))
                next_hello = now + (_HELLO_INTERVAL if missing or refusals else _FIRST_HELLO_INTERVAL)
            message = self._next(until=min(next_hello, limit) if self._connected else limit, parent=parent)
            if message is None:
                continue
            if message.kind is Kind.READY and unpack_fields(message).get("nonce") == self._hello.nonce:
                self._session = message.session
                return
            if message.kind is Kind.WAIT:
                missing = _members(unpack_fields(message).get("missing"), self.size)
                refusals.clear()
            elif message.kind is Kind.REFUSE:
                refusals.append((time.monotonic(), _reason(message)))

    def run(self, op: Op, payload: Payload = NO_PAYLOAD) -> dict[int, Message]:
        """Takes part in the next collective.

        Returns:
            The parts of the other members, by their place in the group; empty where this one gets none.

        Raises:
            CollectiveError: It cannot be done; the class and the message say why.
        """
        self.raise_if_terminated()
        self._serial += 1
        serial = self._serial
        tracker = self._contribute(op, serial, payload)
        result = None if op is Op.BROADCAST and self.index == ROOT else self._result(op, serial)
        self._wait_until_sent(tracker, until=None)
        return {} if result is None or not result.frames else self._parts(result)

    def close(self) -> None:
        """Says goodbye."""
        with contextlib.suppress(CollectiveError):
            self._pump()
        # The empty frame only tells when the message has left.
        frame = tracked(b"")
        tracker = frame.tracker
        self._send(Message(Kind.BYE, self.index, self._session, frames=(frame,)))
        del frame
        self._wait_until_sent(tracker, until=time.monotonic() + _CLOSE_TIMEOUT)
        self._disconnect()

    def raise_if_terminated(self) -> None:
        """Raises what ended the group, once every message before it has been taken."""
        self._pump()
        if self._termination is not None and not self._inbox:
            raise self._termination.error()

    def _disconnect(self) -> None:
        self._monitor.close()
        self._dealer.close()

    def _result(self, op: Op, serial: int) -> Message:
        until = None if self._timeout is None else time.monotonic() + self._timeout + _HUB_GRACE
        message = self._next(until=until)
        while message is None:
            if until is not None and time.monotonic() >= until:
                raise CollectiveTimeoutError(
                    f"{self._membership.describe([ROOT])}, which serves the collectives, is silent",
                    ranks=self._membership.job_ranks([ROOT]),
                )
            message = self._next(until=until)
        if message.kind is Kind.REFUSE:
            raise CollectiveError(
                f"{self._membership.describe([ROOT])} refuses this process: {_reason(message)}"
            )
        if message.kind is not Kind.RESULT or message.serial != serial:
            raise CollectiveOrderError(
                f"a message is out of order: {message.kind.name} number {message.serial} came "
                f"where the result of number {serial} was due"
            )
        if message.op is not op:
            raise CollectiveOrderError(
                f"the ranks disagree about collective number {serial}: "
                f"{self._membership.describe([self.index])} called {op.call} and "
                f"{self._membership.describe([ROOT])} called {message.op.call}. "
                "Every rank must make the same calls in the same order",
                ranks=self._membership.job_ranks([ROOT, self.index]),
            )
        return message

    def _parts(self, result: Message) -> dict[int, Message]:
        parts = {
            member: self._codec.decode(frames)
            for member, frames in unbundle(result.frames, self.index).items()
        }
        for member, part in parts.items():
            if (part.rank, part.session, part.serial, part.op) != (
                member,
                self._session,
                result.serial,
                result.op,
            ):
                raise CollectiveOrderError(f"a part of {self._membership.describe([member])} is out of order")
        return parts

    def _next(self, *, until: float | None, parent: "HubClient | None" = None) -> Message | None:
        """The next message, or None when something else happened or the time is over."""
        connected = self._connected
        self._pump()
        if not self._inbox:
            self._raise_if_terminated(parent)
        if not self._inbox and self._connected is connected:
            self._poll(_POLL if until is None else min(_POLL, max(0.0, until - time.monotonic())))
            self._pump()
        if self._inbox:
            return self._inbox.popleft()
        self._raise_if_terminated(parent)
        return None

    def _raise_if_terminated(self, parent: "HubClient | None") -> None:
        if self._termination is not None:
            raise self._termination.error()
        if not self._hub_alive():
            raise CollectiveError("the thread that serves the collectives of this job has ended")
        if parent is not None:
            parent.raise_if_terminated()

    def _poll(self, seconds: float) -> None:
        self._poller.poll(int(seconds * 1000) + 1)

    def _pump(self) -> None:
        """Takes in what has arrived."""
        events = self._monitor.read()
        self._connected = self._connected if events.connected is None else events.connected
        # Messages that the hub sent before the connection broke count.
        while self._receive():
            pass
        if events.broken and self._session != NO_SESSION:
            self._connected = False
            self._mark_hub_lost()

    def _receive(self) -> bool:
        if not readable(self._dealer):
            return False
        frames = self._dealer.recv_multipart(zmq.NOBLOCK, copy=False)
        try:
            message = self._codec.decode(frames)
        except CollectiveAuthError:
            if not _is_refusal(frames):
                raise
            message = Codec(None).decode(frames)
        if message.kind is Kind.ABORT:
            self._termination = self._termination or Termination.from_fields(unpack_fields(message))
        elif message.kind is Kind.REFUSE or self._session in {NO_SESSION, message.session}:
            self._inbox.append(message)
        return True

    def _mark_hub_lost(self) -> None:
        self._termination = self._termination or Termination(
            Cause.LOST,
            f"{self._membership.describe([ROOT])}, which serves the collectives at {self._endpoint}, "
            "is gone: its process ended or its host cannot be reached. Its own log says why",
            self._membership.job_ranks([ROOT]),
        )

    def _send(self, message: Message) -> bool:
        if not self._connected:
            return False
        try:
            self._dealer.send_multipart(self._codec.encode(message), zmq.NOBLOCK, copy=False)
        except zmq.Again:
            # A hub in this process that failed: that kind of connection ends without events.
            self._connected = False
        return self._connected

    def _contribute(self, op: Op, serial: int, payload: Payload) -> zmq.MessageTracker:
        """Sends this rank's part, and returns what tells when its memory is not needed any more."""
        # Nothing of this may outlive the call: a reference to a frame would keep it from being done.
        frames, tracker = _shared(payload.frames)
        message = Message(Kind.CONTRIBUTE, self.index, self._session, serial, op, payload.encoding, frames)
        if not self._send(message):
            self._mark_hub_lost()
        return tracker

    def _wait_until_sent(self, tracker: zmq.MessageTracker, *, until: float | None) -> None:
        """Waits until the memory of a message is not needed any more, so that the caller may change it."""
        while self._connected and not tracker.done and (until is None or time.monotonic() < until):
            try:
                tracker.wait(_SENT_POLL)
            except zmq.NotDone:
                self._pump()
                if until is None and self._termination is not None:
                    return

    def _join_error(self, timeout: float, missing: list[int] | None, refusal: str | None) -> CollectiveError:
        me = self._membership.describe([self.index])
        root = self._membership.describe([ROOT])
        if refusal is not None:
            return CollectiveError(
                f"{root} at {self._endpoint} does not accept {me}: {refusal}. If that is another job, "
                "give each its own port: pass pull_port, or set RESOLUTE_COLLECTIVE_PORTS=pub,pull",
                ranks=self._membership.job_ranks([ROOT]),
            )
        if missing:
            return CollectiveTimeoutError(
                f"{self._membership.describe(missing)} did not join within {timeout:g} s, "
                f"and {root} is silent",
                ranks=self._membership.job_ranks(missing),
            )
        state = "does not answer" if self._connected else "cannot be reached"
        return CollectiveTimeoutError(
            f"{root} {state} at {self._endpoint}: {me} waited {timeout:g} s. Check that it "
            "runs, that the address is one of its machine, and that the port is open",
            ranks=self._membership.job_ranks([ROOT]),
        )


def _shared(frames: tuple[Frame, ...]) -> tuple[tuple[Frame, ...], zmq.MessageTracker]:
    """Large frames as messages that use their memory in place, and what tells when that is over."""
    shared = [frame if len(frame) < LARGE else tracked(frame) for frame in frames]
    trackers = [frame.tracker for frame in shared if isinstance(frame, zmq.Frame)]
    return tuple(shared), zmq.MessageTracker(*trackers)


def _is_refusal(frames: Sequence[Frame]) -> bool:
    try:
        return Codec(None).decode(frames).kind is Kind.REFUSE
    except CollectiveError:
        return False


def _reason(message: Message) -> str:
    return str(unpack_fields(message).get("reason", "no reason given"))


def _members(value: object, size: int) -> list[int]:
    if isinstance(value, list) and all(isinstance(item, int) and 0 <= item < size for item in value):
        return value
    raise MalformedFrameError("a WAIT message without the missing ranks arrived")
