"""The hub of a group: a thread that distributes the members' contributions.

It runs in the process of the first member. Because it has its own thread, it reports the loss of a member to
all others at once, even while the main thread is busy.
"""

import logging
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import zmq

from resolute.core.distributed.errors import CollectiveAuthError, CollectiveError, MalformedFrameError
from resolute.core.distributed.group.collectives import ROOT, Cause, CollectiveResult, PendingCollectives
from resolute.core.distributed.group.handshake import Handshake, Hello
from resolute.core.distributed.group.parameters import GroupParameters
from resolute.core.distributed.transport.messages import (
    SESSION_BYTES,
    Codec,
    Kind,
    Message,
    pack_fields,
    unpack_fields,
)
from resolute.core.distributed.transport.payload import Frame
from resolute.core.distributed.transport.sockets import (
    ConnectionMonitor,
    ZmqContext,
    open_socket,
    readable,
    tracked,
)

logger = logging.getLogger(__name__)

_IDLE_POLL = 1.0
# At the end: how long to wait for members that have not asked for a broadcast, and for the last bytes to go.
_CLOSE_TIMEOUT = 2.0
_FLUSH_TIMEOUT = 5.0
_FLUSH_POLL = 0.005
_BIND_TIMEOUT = 10.0
_BIND_RETRY = 0.2
_MAX_REFUSALS_LOGGED = 3


@dataclass(frozen=True)
class _Connection:
    identity: bytes
    descriptor: int | None  # None: a member in this very process


class Hub:
    """Serves one group until its first member leaves.

    Args:
        context: Owner of the sockets.
        parameters: What the members agree on.
        start_timeout: Seconds from `start` for all members to join.
    """

    def __init__(self, context: ZmqContext, parameters: GroupParameters, *, start_timeout: float) -> None:
        self._membership = parameters.membership
        self._codec = parameters.codec
        self._start_timeout = start_timeout
        self._session = secrets.token_bytes(SESSION_BYTES)
        self._handshake = Handshake(parameters.membership, parameters.job)
        self._collectives = PendingCollectives(parameters.membership, timeout=parameters.timeout)
        self._connections: dict[int, _Connection] = {}
        self._members: dict[bytes, int] = {}
        self._broken: list[int] = []
        self._started = False
        self._aborted = False
        self._stopping = False
        self._start_deadline = 0.0
        self._closing_since: float | None = None
        self._abort_tracker: zmq.MessageTracker | None = None
        self._refusals = 0
        self._router = open_socket(context, zmq.ROUTER, ipv6=parameters.ipv6)
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._monitor = ConnectionMonitor(self._router)
        self._thread: threading.Thread | None = None

    def bind(self, endpoint: str) -> str:
        """Listens at an endpoint, and returns it with the port that was chosen, if any.

        Raises:
            CollectiveError: Somebody else listens there, and did not go away in ten seconds.
        """
        deadline = time.monotonic() + _BIND_TIMEOUT
        while True:
            try:
                self._router.bind(endpoint)
                return self._router.getsockopt_string(zmq.LAST_ENDPOINT)
            except zmq.ZMQError as error:
                # The run before this one may still be on its way out.
                if error.errno != zmq.EADDRINUSE or time.monotonic() >= deadline:
                    raise CollectiveError(
                        f"rank 0 cannot listen at {endpoint}: {error}. If another job on this host uses the "
                        "port, give each its own: pass pull_port, or set RESOLUTE_COLLECTIVE_PORTS=pub,pull"
                    ) from error
            time.sleep(_BIND_RETRY)

    def start(self, name: str) -> None:
        """Begins to serve, in a thread of this name."""
        self._start_deadline = time.monotonic() + self._start_timeout
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread serves."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Ends the thread, after its last messages, and closes the sockets."""
        self._stopping = True
        if self._thread is None:
            self._close()
        else:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:
            logger.exception("the collectives of this job failed")
            root = self._membership.describe([ROOT])
            self._collectives.end(Cause.INTERNAL, f"{root} cannot serve the collectives: {error!r}", [ROOT])
            self._abort_if_terminated()
            self._router.setsockopt(zmq.LINGER, int(_CLOSE_TIMEOUT * 1000))
        finally:
            self._close()

    def _close(self) -> None:
        if not self._router.closed:
            self._monitor.close()
            self._router.close()

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._monitor.socket, zmq.POLLIN)
        while not self._finished(time.monotonic()):
            poller.poll(int(self._poll_timeout(time.monotonic()) * 1000) + 1)
            self._read_connection_events()
            # Messages that a member sent before its connection broke count; so messages come before deaths.
            while self._receive():
                pass
            self._drop_broken_connections()
            now = time.monotonic()
            self._check_start(now)
            self._collectives.tick(now)
            self._abort_if_terminated()

    def _poll_timeout(self, now: float) -> float:
        deadlines = [
            now + _IDLE_POLL,
            self._collectives.next_deadline(),
            None if self._started else self._start_deadline,
            None if self._closing_since is None else now + _FLUSH_POLL,
        ]
        return max(0.0, min(deadline for deadline in deadlines if deadline is not None) - now)

    def _finished(self, now: float) -> bool:
        if self._closing_since is None:
            return self._stopping
        waited = now - self._closing_since
        if self._collectives.undelivered and waited < _CLOSE_TIMEOUT:
            return False
        return self._abort_tracker is None or self._abort_tracker.done or waited >= _FLUSH_TIMEOUT

    def _read_connection_events(self) -> None:
        self._broken += self._monitor.read().broken

    def _receive(self) -> bool:
        """Handles one message; False when there is none."""
        if not readable(self._router):
            return False
        identity, *frames = self._router.recv_multipart(zmq.NOBLOCK, copy=False)
        sender = bytes(identity.buffer)
        try:
            message = self._codec.decode(frames, with_payload=False)
            self._handle(sender, message, frames)
        except (CollectiveAuthError, MalformedFrameError) as error:
            self._refuse(sender, str(error))
        return True

    def _handle(self, sender: bytes, message: Message, frames: Sequence[zmq.Frame]) -> None:
        if message.kind is Kind.HELLO:
            # The payload decides here, so it must be the signed one.
            self._codec.decode(frames)
            self._admit(sender, Hello.from_fields(unpack_fields(message)), _descriptor(frames[0]))
            return
        member = self._members.get(sender)
        if member is None:
            self._refuse(sender, "this process has not joined this job")
        elif message.kind is Kind.BYE:
            self._handle_bye(member)
        elif message.session != self._session or message.rank != member:
            self._refuse(sender, "this message belongs to another job")
        elif message.kind is Kind.CONTRIBUTE and self._started:
            results = self._collectives.contribute(
                member, serial=message.serial, op=message.op, part=frames, now=time.monotonic()
            )
            for result in results:
                self._send_result(result)

    def _admit(self, sender: bytes, hello: Hello, descriptor: int | None) -> None:
        # The number of a broken connection is used again: hear of the old one before it gets a new owner.
        self._read_connection_events()
        self._drop_broken_connections()
        known = self._members.get(sender)
        if known is None:
            reason = "this job has started without it" if self._started else self._handshake.refusal(hello)
            if reason is not None:
                self._refuse(sender, reason)
                return
            self._handshake.enter(hello)
            self._members[sender] = hello.member
            self._connections[hello.member] = _Connection(sender, descriptor)
        missing = self._handshake.missing
        if missing:
            fields = {"missing": missing, "nonce": hello.nonce}
            self._send(hello.member, Message(Kind.WAIT, ROOT, frames=pack_fields(fields)))
        elif not self._started:
            self._begin()

    def _begin(self) -> None:
        self._started = True
        for member in list(self._connections):
            # The nonce proves to the member that this is no recording of another start.
            fields = pack_fields({"nonce": self._handshake.nonce(member)})
            self._send(member, Message(Kind.READY, ROOT, self._session, frames=fields))

    def _handle_bye(self, member: int) -> None:
        self._collectives.leave(member)
        if not self._started:
            self._collectives.end(
                Cause.CLOSED, f"{self._membership.describe([member])} left before all had joined", [member]
            )
        if member == ROOT and self._closing_since is None:
            self._closing_since = time.monotonic()

    def _drop_broken_connections(self) -> None:
        """Handles the connections that broke."""
        broken, self._broken = set(self._broken), []
        for member, connection in list(self._connections.items()):
            if connection.descriptor in broken:
                self._drop_member(member)

    def _drop_member(self, member: int) -> None:
        connection = self._connections.pop(member)
        del self._members[connection.identity]
        self._collectives.mark_lost(member)

    def _check_start(self, now: float) -> None:
        if self._started or self._collectives.termination is not None or now < self._start_deadline:
            return
        missing = self._handshake.missing
        self._collectives.end(
            Cause.TIMEOUT,
            f"{self._membership.describe(missing)} of {len(self._membership)} did not join within "
            f"{self._start_timeout:g} s. Look for errors in their logs; "
            "RESOLUTE_COLLECTIVE_START_TIMEOUT allows more time",
            missing,
        )

    def _abort_if_terminated(self) -> None:
        termination = self._collectives.termination
        if termination is None or self._aborted:
            return
        self._aborted = True
        frame = tracked(*pack_fields(termination.to_fields()))
        # Messages keep their order: once this one has left, all have.
        self._abort_tracker = frame.tracker
        for member in list(self._connections):
            self._send(member, Message(Kind.ABORT, ROOT, self._session, frames=(frame,)))

    def _send_result(self, result: CollectiveResult) -> None:
        self._send(
            result.member,
            Message(Kind.RESULT, ROOT, self._session, result.serial, result.op, frames=result.frames),
        )

    def _send(self, member: int, message: Message) -> None:
        connection = self._connections.get(member)
        if connection is not None and not self._put(connection.identity, self._codec.encode(message)):
            self._drop_member(member)

    def _refuse(self, sender: bytes, reason: str) -> None:
        self._refusals += 1
        if self._refusals <= _MAX_REFUSALS_LOGGED:
            logger.warning("%s refuses a process: %s", self._membership.describe([ROOT]), reason)
        # Unsigned on purpose where the keys differ: it is advice that gives nothing away.
        message = Message(Kind.REFUSE, ROOT, frames=pack_fields({"reason": reason}))
        self._put(sender, Codec(None).encode(message))

    def _put(self, identity: bytes, frames: Sequence[Frame]) -> bool:
        try:
            self._router.send_multipart([identity, *frames], zmq.NOBLOCK, copy=False)
        except zmq.ZMQError as error:
            if error.errno not in {zmq.EHOSTUNREACH, zmq.EAGAIN}:
                raise
            return False
        return True


def _descriptor(frame: zmq.Frame) -> int | None:
    try:
        return int(frame.get(zmq.SRCFD))
    except zmq.ZMQError:
        return None
