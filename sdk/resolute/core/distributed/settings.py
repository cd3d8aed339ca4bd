"""Settings of collectives from the environment."""

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_PUB_PORT = 12360
DEFAULT_PULL_PORT = 12376
DEFAULT_START_TIMEOUT = 600.0

KEY_VARIABLE = "RESOLUTE_COLLECTIVE_KEY"
PORTS_VARIABLE = "RESOLUTE_COLLECTIVE_PORTS"
START_TIMEOUT_VARIABLE = "RESOLUTE_COLLECTIVE_START_TIMEOUT"
TIMEOUT_VARIABLE = "RESOLUTE_COLLECTIVE_TIMEOUT"
ALLOCATION_VARIABLE = "DET_ALLOCATION_ID"
PORT_OFFSET_VARIABLE = "DET_UNIQUE_PORT_OFFSET"


@dataclass(frozen=True)
class CollectiveSettings:
    """The variables that launchers set for all processes of one run, read once.

    Attributes:
        key: Secret that signs every frame; None leaves frames unsigned.
        ports: Publish and pull port that replace the defaults, exactly (no offset is added).
        start_timeout: Seconds for all ranks to connect.
        timeout: Seconds that one collective may wait for its slowest rank; None waits forever.
        job: Identifier of this run, which rejects processes of other runs at the same port.
        port_offset: Number that the environment adds to both ports.
    """

    key: bytes | None = None
    ports: tuple[int, int] | None = None
    start_timeout: float = DEFAULT_START_TIMEOUT
    timeout: float | None = None
    job: str = ""
    port_offset: int = 0

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "CollectiveSettings":
        """Reads the variables.

        Raises:
            ValueError: One of them is malformed; the message names it.
        """
        key = environ.get(KEY_VARIABLE)
        ports = _ports(environ)
        return cls(
            key=key.encode() if key else None,
            ports=ports,
            start_timeout=_seconds(environ, START_TIMEOUT_VARIABLE) or DEFAULT_START_TIMEOUT,
            timeout=_seconds(environ, TIMEOUT_VARIABLE),
            job=environ.get(ALLOCATION_VARIABLE, ""),
            port_offset=0 if ports else _integer(environ, PORT_OFFSET_VARIABLE),
        )

    def pull_port(self, asked: int, offset: int) -> int:
        """The port that the chief serves, given what the caller asked for.

        Only the default gives way to the environment: a port that somebody chose stays.

        Raises:
            ValueError: The sum is no TCP port.
        """
        if self.ports is not None and asked == DEFAULT_PULL_PORT:
            return self.ports[1]
        port = asked + offset
        if not 0 < port < 65536:
            raise ValueError(f"pull_port {asked} + port_offset {offset} = {port} is not between 1 and 65535")
        return port


def _ports(environ: Mapping[str, str]) -> tuple[int, int] | None:
    text = environ.get(PORTS_VARIABLE)
    if not text:
        return None
    fields = [field.strip() for field in text.split(",")]
    if len(fields) == 2 and all(field.isdecimal() and 0 < int(field) < 65536 for field in fields):
        return int(fields[0]), int(fields[1])
    raise ValueError(f'{PORTS_VARIABLE} must be two ports between 1 and 65535 as "pub,pull", not {text!r}')


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{name} must be a number of seconds above 0, not {text!r}")
    return seconds


def _integer(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name) or "0"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name} must be a whole number, not {text!r}") from None
