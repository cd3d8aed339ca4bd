"""The address of the cluster to call, and the token to use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from resolute.client.connection import discovery, trust
from resolute.client.connection.home import Home, LocalCluster
from resolute.contracts.calls.tls import ClientTls
from resolute.errors import FailedPreconditionError, InvalidArgumentError

MASTER_VARIABLES = ("RESOLUTE_MASTER", "DET_MASTER", "DET_MASTER_ADDR")
"""Environment variables that name the cluster, the first set one wins."""
TOKEN_VARIABLE = "RESOLUTE_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable that holds a token."""
USER_TOKEN_VARIABLE = "DET_USER_TOKEN"  # noqa: S105 - the name of a variable
"""Another environment variable that holds a token, which counts after the first."""
USER_VARIABLE, PASSWORD_VARIABLE = "DET_USER", "DET_PASS"
"""Environment variables with the name and the password of a user.

A password that is set and empty is one: no other user's token steps in for it."""
TOKEN_FILE_VARIABLE = "RESOLUTE_TOKEN_FILE"  # noqa: S105 - the name of a variable
"""Environment variable that names a file with a token, which is read at every call. Trials have it."""
_TOKEN_VARIABLES = (TOKEN_VARIABLE, TOKEN_FILE_VARIABLE, USER_TOKEN_VARIABLE)
CERTIFICATE_VARIABLES = ("RESOLUTE_MASTER_CERT", "DET_MASTER_CERT_FILE")
"""Environment variables that name the PEM file of the certificates that sign the cluster's own."""
CERTIFICATE_NAME_VARIABLES = ("RESOLUTE_MASTER_CERT_NAME", "DET_MASTER_CERT_NAME")
"""Environment variables with the name that the cluster's certificate must be for, if not the address's."""
DEFAULT_PORT = 8080
"""Port of an address that names none."""
_SCHEMES = frozenset({"", "http", "https"})


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A cluster's address with the credentials for it."""

    address: str
    """``host:port``."""
    token: Callable[[], str]
    """Returns the token of the next call; empty for none."""
    token_origin: str
    """Where the token comes from, for messages."""
    credential_file: Path
    """Where `resolute user login` keeps the token that it gets."""
    remedy: str
    """What to do when the address does not answer, for messages."""
    tls: ClientTls | None = None
    """Whom to trust; None for a plain port."""
    http_url: str = ""
    """URL of its HTTP gateway; empty if none is known."""

    @property
    def master_url(self) -> str:
        """URL of the cluster: that of the gateway, or else of gRPC."""
        return self.http_url or f"{'http' if self.tls is None else 'https'}://{self.address}"


class NoClusterError(FailedPreconditionError):
    """No cluster is given: no argument or variable names one, and none runs on this machine."""


def no_cluster(home: Home) -> NoClusterError:
    """The error of a command that finds none: none was ever started in the home, or it is down."""
    found = "no cluster is known: none was started on this machine"
    if home.identity_file.exists():
        found = f"the cluster in {home.path} is down"
    return NoClusterError(f"{found}, no address is given, and {MASTER_VARIABLES[0]} is not set")


def find_endpoint(master: str = "", *, environment: Mapping[str, str]) -> Endpoint:
    """Finds the cluster: the given one, else the environment's, else the one embedded in the home.

    Args:
        master: ``host:port`` or ``host`` of gRPC, or the URL of a gateway, which says where gRPC is; empty to
            look further.
        environment: Environment variables.

    Raises:
        NoClusterError: No cluster is named anywhere.
        FailedPreconditionError: A named file cannot be read.
        InvalidArgumentError: The address is not one, or asks for TLS where the cluster of the home has none.
    """
    home = Home.from_environment(environment)
    local = home.read_endpoint()
    origin = "the address given with -m"
    if not master:
        variable, master = named_master(environment)
        origin = f"the address from {variable}"
    if not master:
        if local is None:
            raise no_cluster(home)
        return _local_endpoint(local, home, environment)
    if local is not None and local.http_url and master.rstrip("/") == local.http_url:
        return _local_endpoint(local, home, environment)
    tls = find_tls(master, home, environment)
    address, http_url = _addresses_of(master, tls)
    if local is not None and _same(local.address, address):
        if _asks_for_tls(master) and not http_url:
            raise InvalidArgumentError(
                f"{master} asks for TLS, and the cluster of this machine listens there without it: "
                f"give {local.address}"
            )
        return _local_endpoint(local, home, environment)
    given = _given_token(home.credential_file(address), environment)
    token, token_origin = given or _remote_token(local, home)
    return Endpoint(
        address=address,
        token=token,
        token_origin=token_origin,
        credential_file=home.credential_file(address),
        remedy=f"check {origin} and that the cluster runs",
        tls=tls,
        http_url=http_url,
    )


def named_master(environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable that names the cluster, and what it says; both empty if none does."""
    variable = next((name for name in MASTER_VARIABLES if environment.get(name)), "")
    return variable, environment.get(variable, "")


def names_user(environment: Mapping[str, str]) -> bool:
    """Whether the environment says who acts: by a token, or by a name."""
    return bool(_token_variable(environment) or environment.get(USER_VARIABLE))


def named_user(environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The user that the environment names, and the password that it gives.

    A name with a password comes before the token of a run or of Determined, which scripts did not choose.

    Returns:
        The name, empty if it names none or has a token; the password, which may be empty, or None if it
        gives none.
    """
    user, password = environment.get(USER_VARIABLE, ""), environment.get(PASSWORD_VARIABLE)
    stronger = _TOKEN_VARIABLES if password is None else (TOKEN_VARIABLE,)
    if not user or _token_variable(environment) in stronger:
        return "", None
    return user, password


def find_tls(master: str, home: Home, environment: Mapping[str, str]) -> ClientTls | None:
    """Returns the TLS settings of a cluster, from the environment or a certificate confirmed at a login.

    Args:
        master: Its address or URL, as people write it.
        home: Holds the certificates that were confirmed.
        environment: Environment variables.

    Returns:
        Whom to trust: the public authorities for a URL of HTTPS of which nothing is known; None for a plain
        port.

    Raises:
        FailedPreconditionError: A named file cannot be read.
    """
    variable = next((name for name in CERTIFICATE_VARIABLES if environment.get(name)), "")
    if variable:
        name = next((environment[one] for one in CERTIFICATE_NAME_VARIABLES if environment.get(one)), "")
        try:
            return ClientTls.read(Path(environment[variable]), server_name=name)
        except FailedPreconditionError as error:
            raise FailedPreconditionError(f"{variable}: {error}") from error
    confirmed = trust.read(home, parse_address(master))
    return confirmed or (ClientTls() if _asks_for_tls(master) else None)


def _asks_for_tls(master: str) -> bool:
    return master.lower().startswith("https://")


def _addresses_of(master: str, tls: ClientTls | None) -> tuple[str, str]:
    """The address of gRPC, and the URL of the gateway; the latter is empty if none is named."""
    address = parse_address(master)
    if not master.lower().startswith(("http://", "https://")):
        return address, ""
    discovered = discovery.grpc_address(master, tls=tls)
    return (parse_address(discovered), master.rstrip("/")) if discovered else (address, "")


def parse_address(master: str) -> str:
    """Turns what people write, ``host``, ``host:port`` or a URL, into ``host:port``.

    Raises:
        InvalidArgumentError: It names no host, a port that is none, or a protocol that is not HTTP.
    """
    try:
        parts = urlsplit(master if "://" in master else f"//{master}")
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        raise InvalidArgumentError(f"{master!r} is not an address ({error}); write HOST:PORT") from error
    if scheme not in _SCHEMES:
        raise InvalidArgumentError(f"{master!r} is not an address: write HOST:PORT, http://… or https://…")
    if not host:
        raise InvalidArgumentError(f"{master!r} names no host; write HOST:PORT")
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{port or DEFAULT_PORT}"


def _same(one: str, other: str) -> bool:
    return one.replace("localhost:", "127.0.0.1:") == other.replace("localhost:", "127.0.0.1:")


def _local_endpoint(local: LocalCluster, home: Home, environment: Mapping[str, str]) -> Endpoint:
    credential = home.credential_file(local.address)
    token, origin = _given_token(credential, environment) or _file_token(local.token_path)
    return Endpoint(
        address=local.address,
        token=token,
        token_origin=origin,
        credential_file=credential,
        remedy=f"{home.endpoint_file} names it, so it has stopped or died: start it with `resolute up`",
        http_url=local.http_url,
    )


def _remote_token(local: LocalCluster | None, home: Home) -> tuple[Callable[[], str], str]:
    if local is not None and local.token_path == home.token_file:
        # That token is the embedded cluster's; another cluster must not get to see it, and could not use it.
        return _no_token, f"none was sent: {home.token_file} is of the cluster at {local.address}"
    return _file_token(home.token_file)


def _given_token(credential: Path, environment: Mapping[str, str]) -> tuple[Callable[[], str], str] | None:
    """The token that a person chose: the environment's, else the one that a login got."""
    variable = _token_variable(environment)
    if variable == TOKEN_FILE_VARIABLE:
        return _file_token(Path(environment[variable]))
    if variable:
        token = environment[variable].strip()
        return lambda: token, f"from {variable}"
    return _file_token(credential) if credential.exists() else None


def _token_variable(environment: Mapping[str, str]) -> str:
    """The variable that has the token; empty if none has, as one that is blank."""
    return next((name for name in _TOKEN_VARIABLES if environment.get(name, "").strip()), "")


def _no_token() -> str:
    return ""


def _file_token(path: Path) -> tuple[Callable[[], str], str]:
    def read() -> str:
        # Read for every call: a cluster that starts again may have written a new one.
        try:
            return path.read_text(encoding="utf-8-sig").strip()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise FailedPreconditionError(
                f"cannot read the token in {path}: {why}; give one in {TOKEN_VARIABLE}"
            ) from error

    return read, f"from {path}"
