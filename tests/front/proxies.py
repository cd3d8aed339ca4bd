"""nginx and Envoy with the settings of deploy/gateway, on ports of this machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from support.certificates import Authority
from support.pages.commands import ROOT
from support.ports import free_port
from support.waiting import wait_until

_GRPC_PORTS = (8080, 8081, 8082, 8083, 8084, 8085, 8086)
_PUBLIC_PORT = 8443
KINDS = ("nginx", "envoy")


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs."""

    port: int
    authority: Path
    """PEM of the authority that signed its certificate."""

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"https://{self.address}"

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"localhost:{self.port}"

    def channel(self) -> grpc.aio.Channel:
        """A channel through it; close it after use."""
        credentials = grpc.ssl_channel_credentials(self.authority.read_bytes())
        return grpc.aio.secure_channel(self.address, credentials, [("grpc.enable_http_proxy", 0)])


def _program(kind: str) -> str:
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], "/usr/sbin"])
    program = shutil.which(kind, path=search)
    if program is None:
        pytest.skip(f"{kind} is not here: tools/install_clients.sh installs nginx, and `make front` Envoy")
    return program


@contextmanager
def proxy(
    kind: str,
    folder: Path,
    *,
    grpc_port: int,
    http_ports: tuple[int, int],
    second_grpc_port: int = 0,
    port: int = 0,
    authority: Authority | None = None,
    services: Authority | None = None,
) -> Iterator[Proxy]:
    """Runs a proxy until the block ends.

    Args:
        kind: nginx or envoy.
        folder: An empty directory.
        grpc_port: Where all services are.
        http_ports: Where two gateways are, or one twice.
        second_grpc_port: Where a second gateway serves gRPC; zero for where all services are.
        port: Where it listens; zero for a free port.
        authority: Signs its certificate; None for a new one.
        services: Has signed the certificates of the services and the gateways; None where they have no TLS.
    """
    program = _program(kind)
    authority = authority or Authority.create(folder)
    server = authority.issue(folder)
    public = port or free_port()
    ports = {
        **dict.fromkeys(_GRPC_PORTS, grpc_port),
        8087: http_ports[0],
        8088: second_grpc_port or grpc_port,
        8089: http_ports[1],
        _PUBLIC_PORT: public,
    }
    if kind == "nginx":
        config = folder / "nginx.conf"
        text = _moved((ROOT / "deploy/gateway/nginx.conf").read_text(), ports, "127.0.0.1:")
        text = f"pid {folder}/pid;\nerror_log stderr;\n{text}"
        command = [program, "-p", str(folder), "-c", str(config), "-g", "daemon off;"]
    else:
        config = folder / "envoy.yaml"
        text = _moved((ROOT / "deploy/gateway/envoy.yaml").read_text(), ports, "port_value: ")
        command = [program, "--config-path", str(config), "--disable-hot-restart", "--log-level", "warning"]
    files = {"server.pem": server.certificate, "server-key.pem": server.key}
    if services is not None:
        text = _with_tls(text)
        own = services.issue(folder, name="proxy")
        files |= {"ca.pem": services.file, "client.pem": own.certificate, "client-key.pem": own.key}
    for name, path in files.items():
        text = text.replace(f"/etc/resolute/tls/{name}", str(path))
    config.write_text(text)
    with _running(command, folder, public):
        yield Proxy(public, authority.file)


@contextmanager
def below_a_path(folder: Path, path: str, *, http_port: int) -> Iterator[str]:
    """Runs nginx as hubs of notebooks do: the gateway is below a path that nginx takes away. Gives its URL.

    Args:
        folder: An empty directory.
        path: It begins with a slash.
        http_port: Where the gateway is.
    """
    program, config, port = _program("nginx"), folder / "nginx.conf", free_port()
    config.write_text(
        f"""
        pid {folder}/pid;
        error_log stderr;
        events {{}}
        http {{
            access_log off;
            server {{
                listen 127.0.0.1:{port};
                location {path}/ {{
                    proxy_pass http://127.0.0.1:{http_port}/;
                    proxy_http_version 1.1;
                    proxy_set_header Host $http_host;
                    proxy_buffering off;
                }}
            }}
        }}
        """
    )
    with _running([program, "-p", str(folder), "-c", str(config), "-g", "daemon off;"], folder, port):
        yield f"http://127.0.0.1:{port}{path}"


@contextmanager
def _running(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(lambda: _listens(port, process, folder / "log"), what=f"{command[0]} to listen")
            yield
        finally:
            process.terminate()
            process.wait(60)


def _moved(text: str, ports: Mapping[int, int], form: str) -> str:
    """Replaces the ports of a file, all at once."""
    pattern = re.compile(re.escape(form) + r"(\d+)\b")
    return pattern.sub(lambda found: f"{form}{ports[int(found[1])]}", text)


def _with_tls(text: str) -> str:
    """The settings for services with TLS, made as their first lines say."""
    (command,) = re.findall(
        r"^# Where services and gateway have TLS of their own: (sed .*)$", text, re.MULTILINE
    )
    done = subprocess.run(shlex.split(command), input=text, capture_output=True, text=True, check=True)
    return done.stdout


def _listens(port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
