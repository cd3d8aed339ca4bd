"""A registry of one image on loopback, which answers nothing of the image until it is let."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support.daemons.containers import Podman

_NAME = "held"
_CONF = """\
[[registry]]
location = "{host}"
insecure = true
"""


class HeldRegistry:
    """A running registry.

    Args:
        layout: Folder with the image, as OCI lays it out.
        host: ``address:port`` where it listens.
        settings: File that lets Podman ask it without TLS.
    """

    def __init__(self, layout: Path, *, host: str, settings: Path) -> None:
        self.image = f"{host}/{_NAME}:1"
        """What Podman pulls."""
        self.settings = settings
        """Let Podman ask it, see ``Podman.registries``."""
        self.asked = threading.Event()
        """Set once it was asked for the image."""
        self.let = threading.Event()
        """Has it answer."""
        self.down = False
        """Whether it answers that it is unavailable."""
        self._blobs = layout / "blobs" / "sha256"
        self._manifest = json.loads((layout / "index.json").read_text())["manifests"][0]

    def answer(self, path: str) -> tuple[bytes, str, str] | None:
        """Returns the content, media type and digest of what is asked for; None if it is not there."""
        if path == "/v2/":
            return b"{}", "application/json", ""
        kind, _, reference = path.removeprefix(f"/v2/{_NAME}/").partition("/")
        media, digest = "application/octet-stream", reference
        if kind == "manifests":
            self.asked.set()
            self.let.wait()
            media, digest = self._manifest["mediaType"], self._manifest["digest"]
        blob = self._blobs / digest.removeprefix("sha256:")
        return (blob.read_bytes(), media, digest) if blob.is_file() else None


@contextmanager
def held_registry(podman: Podman, image: str, folder: Path) -> Iterator[HeldRegistry]:
    """Serves an image that Podman has."""
    layout = folder / "image"
    podman.run("save", "--format", "oci-dir", "--uncompressed", "--output", str(layout), image)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = registry.answer(self.path)
            # Who asked may have given up.
            with suppress(ConnectionError):
                self.send_response(503 if registry.down else 404 if found is None else 200)
                content, media, digest = found or (b"", "application/json", "")
                self.send_header("Content-Type", media)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Docker-Content-Digest", digest)
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else content)

        do_HEAD = do_GET  # noqa: N815 - the name is that of the method of HTTP

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host = f"127.0.0.1:{server.server_address[1]}"
    settings = folder / "registries.conf"
    settings.write_text(_CONF.format(host=host))
    registry = HeldRegistry(layout, host=host, settings=settings)
    serving = threading.Thread(target=server.serve_forever, name="held-registry")
    serving.start()
    try:
        yield registry
    finally:
        registry.let.set()
        server.shutdown()
        serving.join()
        server.server_close()
        podman.run("rmi", "--force", registry.image, check=False)
