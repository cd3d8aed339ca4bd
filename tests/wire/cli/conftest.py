"""A scripted cluster, and the command line on it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog
from support.logs import plain_logs
from support.services.in_process import Running, serving
from wire.cli.scripted import ScriptedCluster

from resolute.cli.main import run
from resolute_embedded.blueprints import BLUEPRINTS


@dataclass(frozen=True)
class Outcome:
    """What a command line did."""

    code: int
    out: str
    err: str


CommandLine = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, and an environment that names no cluster."""
    for name in ("RESOLUTE_MASTER", "DET_MASTER", "RESOLUTE_TOKEN", "RESOLUTE_MODEL_DEFINITION_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("RESOLUTE_HOME", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def cluster(home: Path, tmp_path: Path) -> Iterator[ScriptedCluster]:
    """A cluster whose address and admin token are in the home."""
    # Unconfigured, the server would log to stdout, where the tests look for what commands print.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with ScriptedCluster(tmp_path / "cluster").serving() as scripted:
        token = home / "token"
        token.write_text(scripted.token())
        endpoint = {"address": scripted.address, "token_path": str(token), "cluster_id": "", "pid": 1}
        (home / "endpoint.json").write_text(json.dumps(endpoint))
        yield scripted
    plain_logs()


def _command_line(capfd: pytest.CaptureFixture[str], program: str) -> CommandLine:
    def call(*arguments: str) -> Outcome:
        capfd.readouterr()
        code = run(list(arguments), program=program)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return call


@pytest.fixture
def resolute(home: Path, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs command lines in this process."""
    return _command_line(capfd, "resolute")


@pytest.fixture
def determined(home: Path, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs command lines of `det` in this process."""
    return _command_line(capfd, "det")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """All services, in a thread."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving(BLUEPRINTS, tmp_path_factory.mktemp("services")) as running:
            found.append(running)
            ready.set()
            await stop.wait()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, name="all-services", daemon=True)
    thread.start()
    assert ready.wait(60), "the services did not start"
    yield found[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    plain_logs()


def point_home(home: Path, services: Running) -> None:
    """Writes the address of services into a home, and the token of an admin."""
    (home / "token").write_text(services.user_token(name="admin"))
    endpoint = {"address": services.address, "token_path": str(home / "token"), "cluster_id": "", "pid": 1}
    (home / "endpoint.json").write_text(json.dumps(endpoint))


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A directory of code with a config in it."""
    path = tmp_path / "code"
    path.mkdir()
    (path / "train.py").write_text("print('training')\n")
    (path / "const.yaml").write_text(
        "name: digits\nentrypoint: python3 train.py\nhyperparameters: {lr: 1e-3}\n"
    )
    return path


@pytest.fixture
def later() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Runs something in a thread that has ended, without an error, when the test has."""
    threads: list[threading.Thread] = []
    failures: list[BaseException] = []

    def start(work: Callable[[], object]) -> None:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - raised again below
                failures.append(error)

        thread = threading.Thread(target=guarded, name="later", daemon=True)
        threads.append(thread)
        thread.start()

    yield start
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]
