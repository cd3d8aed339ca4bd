"""The sockets of a group: their options, and the library's events about their connections."""

from dataclasses import dataclass, field

import zmq
from zmq.utils.monitor import recv_monitor_message

from resolute.core.distributed.transport.fork_safety import Descriptors
from resolute.core.distributed.transport.payload import Frame, view

ZmqContext = zmq.Context[zmq.Socket[bytes]]
ZmqSocket = zmq.Socket[bytes]

# A host that vanishes sends nothing; after this many seconds without an answer its connection is broken.
# A process that dies is noticed at once, because its kernel says so.
_VANISHED_AFTER = 30
_PROBE_INTERVAL = 5

_WATCHED = (
    zmq.EVENT_LISTENING
    | zmq.EVENT_ACCEPTED
    | zmq.EVENT_CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
)


def open_socket(context: ZmqContext, kind: int, *, ipv6: bool) -> ZmqSocket:
    """A socket that never drops or limits messages, and notices a peer that vanishes.

    Args:
        context: Its owner.
        kind: ``zmq.ROUTER`` or ``zmq.DEALER``.
        ipv6: Speak IPv6 as well.
    """
    socket = context.socket(kind)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    # The library would wait for connections that are gone, too. What must arrive is tracked instead.
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IPV6, int(ipv6))
    socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
    socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 2 * _PROBE_INTERVAL)
    socket.setsockopt(zmq.TCP_KEEPALIVE_INTVL, _PROBE_INTERVAL)
    socket.setsockopt(zmq.TCP_KEEPALIVE_CNT, _VANISHED_AFTER // _PROBE_INTERVAL - 2)
    socket.setsockopt(zmq.TCP_MAXRT, _VANISHED_AFTER * 1000)
    return socket


def tcp_url(host: str, port: int) -> str:
    """The endpoint of a host name or address, IPv6 included."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def readable(socket: ZmqSocket) -> bool:
    """Whether a message waits; much cheaper than an attempt to receive one that is not there."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def tracked(frame: Frame) -> zmq.Frame:
    """A frame that uses the memory in place, and whose `tracker` is done when it is sent or dropped."""
    return zmq.Frame(view(frame), copy=False, track=True, copy_threshold=0)


@dataclass
class ConnectionEvents:
    """The events of a socket's connections since the last poll.

    Attributes:
        connected: Whether the last event opened a connection or ended one; None without events.
        broken: Descriptors of connections that ended.
    """

    connected: bool | None = None
    broken: list[int] = field(default_factory=list)


class ConnectionMonitor:
    """Reports which connections of a socket open and end. It belongs to the thread that uses the socket."""

    def __init__(self, socket: ZmqSocket) -> None:
        self._watched = socket
        self.socket: ZmqSocket = socket.get_monitor_socket(_WATCHED)
        self._descriptors = Descriptors()

    def read(self) -> ConnectionEvents:
        """All events there are, without waiting."""
        events = ConnectionEvents()
        while readable(self.socket):
            event = recv_monitor_message(self.socket, zmq.NOBLOCK)
            kind, descriptor = event["event"], event["value"]
            if kind in {zmq.EVENT_LISTENING, zmq.EVENT_ACCEPTED, zmq.EVENT_CONNECTED}:
                self._descriptors.numbers.add(descriptor)
            elif kind == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                events.connected = True
            else:
                self._descriptors.numbers.discard(descriptor)
                if kind == zmq.EVENT_DISCONNECTED:
                    events.connected = False
                    events.broken.append(descriptor)
        return events

    def close(self) -> None:
        """Stops watching. The descriptors are forgotten before their numbers can be used again."""
        self._descriptors.numbers.clear()
        self._watched.disable_monitor()
        self.socket.close(linger=0)
