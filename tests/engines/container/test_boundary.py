"""What a trial in a container of a real Podman or Docker does not reach, and what configs cannot mount."""

from __future__ import annotations

import json
import re
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import ControlPlane
from support.engines.containers.engine import CLUSTER, ContainerUnderTest
from support.engines.containers.image import IMAGE
from support.engines.containers.podman import PodmanService
from support.engines.containers.service import ContainerService
from support.engines.session import cleared, engine_session, scenario, seen
from support.waiting import wait_until

from resolute.contracts.values import from_value, to_value
from resolute.errors import InvalidConfigError, QuotaError

OTHER = "allocation-2"
DOCS = Path(__file__).parents[3] / "docs/containers.md"
LISTENS = "echo listening; exec python3 -m http.server 8000 --directory /resolute"
METADATA = "169.254.169.254"
ATTEMPTS = """
import json, os, pathlib, socket, sys
told = json.loads(sys.argv[1])
def reads(path):
    return bool(pathlib.Path(path).read_bytes())
def connects(host, port):
    with socket.create_connection((host, port), timeout=3):
        return True
def finds(name):
    roots = [path for path in pathlib.Path("/").iterdir() if path.name not in {"proc", "sys", "resolute"}]
    return any(name in files for root in roots for _, _, files in os.walk(root))
def is_root():
    os.setuid(0)
    return True
def mounts():
    os.chroot("/resolute")
    return True
def all_processes():
    return [one.read_bytes() for one in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
attempts = {
    "passwords of the image": lambda: reads("/etc/shadow"),
    "another run's order": lambda: finds("launch.json"),
    "another run's volume": lambda: reads(told["volume"]),
    "the home of root": lambda: bool(os.listdir("/root")),
    "a file of the host": lambda: reads(told["secret"]),
    "the runtime, to write": lambda: bool(pathlib.Path("/opt/resolute/start.sh").write_text("")),
    "the socket of the engine": lambda: finds("podman.sock") or finds("docker.sock"),
    "a process outside": lambda: any(b"system\\0service" in one for one in all_processes()),
    "another run's network": lambda: connects(told["other"], 8000),
    "another run by name": lambda: connects(told["name"], 8000),
    "an isolated network": lambda: connects(told["isolated"], 8000),
    "a database on the loopback": lambda: connects(told["host"], told["database"]),
    "to be root": is_root,
    "to change its root": mounts,
}
for name, attempt in attempts.items():
    try:
        done = attempt()
    except (OSError, PermissionError):
        done = False
    print("REACHED" if done else "refused", name)
"""


def told_to(plane: ControlPlane, script: str) -> None:
    """Replaces the entrypoint of a control plane's run."""
    config = {**from_value(plane.spec.config), "entrypoint": script}
    plane.spec.config.CopyFrom(to_value(config))


@contextmanager
def server(
    service: ContainerService, name: str, *network: str, address: str = "", port: int = 8000
) -> Iterator[str]:
    """A container that listens in a network of its own; gives its address."""
    run = service.run
    try:
        run("network", "create", *network, name)
        at = [f"--ip={address}"] if address else []
        command = ["python3", "-m", "http.server", str(port)]
        run("run", "--detach", f"--name={name}", f"--network={name}", *at, IMAGE, *command)
        connects = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('listens')"
        wait_until(
            lambda: "listens" in run("exec", name, "python3", "-c", connects, check=False),
            what=f"{name} to listen",
            pause=0.2,
        )
        yield address_of(service, name)
    finally:
        run("kill", name, check=False)
        run("rm", "--force", name, check=False)
        run("network", "rm", name, check=False)


def address_of(service: ContainerService, name: str) -> str:
    """Where a container is in its network."""
    described = json.loads(service.run("inspect", name))[0]
    (network,) = described["NetworkSettings"]["Networks"].values()
    return str(network["IPAddress"])


def test_a_trial_reaches_nothing_of_others_and_of_the_machine(container_engine: ContainerUnderTest) -> None:
    engine, service = container_engine, container_engine.service
    secret = engine.folder / "secret-of-the-host"
    secret.write_text("secret")
    name = f"resolute-{CLUSTER[:8]}-{OTHER}-0"

    async def body() -> None:
        with (
            server(service, f"{CLUSTER}-apart", *service.apart) as isolated,
            socket.create_server(("127.0.0.1", 0)) as database,
            engine.control_plane(LISTENS, allocation_id=OTHER) as other,
            engine.control_plane("", files={"attempts.py": ATTEMPTS}) as plane,
        ):
            async with cleared(engine, OTHER), engine_session(engine) as session:
                await session.engine.launch(engine.spec(other))
                await seen(other, "listening")
                told = {
                    "secret": str(secret),
                    "volume": f"{volume_of(service, name)}/run/supervisor.json",
                    "other": address_of(service, name),
                    "name": name,
                    "isolated": isolated,
                    "host": service.host,
                    "database": database.getsockname()[1],
                }
                assert Path(told["volume"]).is_file()
                told_to(plane, f"python3 attempts.py {shlex.quote(json.dumps(told))}; echo tried")
                await session.engine.launch(engine.spec(plane))
                await seen(plane, "tried")
                said = [text for text in plane.text() if text != "tried"]
                assert len(said) == 14
                assert [text for text in said if not text.startswith("refused ")] == []

    scenario(body)


def volume_of(service: ContainerService, name: str) -> str:
    """Where a volume is on the engine's machine."""
    return str(json.loads(service.run("volume", "inspect", name))[0]["Mountpoint"])


def mount(path: Path | str) -> dict[str, Any]:
    """A config that wants a directory of the machine."""
    return {"bind_mounts": [{"host_path": str(path), "container_path": "/mounted"}]}


def storage(path: Path | str, below: str = "") -> dict[str, Any]:
    """A config whose checkpoints lie in a directory of the machine."""
    return {"checkpoint_storage": {"type": "shared_fs", "host_path": str(path), "storage_path": below}}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that trials write to, beside one that they must not see."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("secret")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    return shared


def test_a_link_that_a_trial_leaves_in_a_directory_leads_no_other_trial_out_of_it(
    container_engine: ContainerUnderTest, shared: Path
) -> None:
    named = {"bind_mounts": [str(shared)]}
    engine = ContainerUnderTest(container_engine.service, container_engine.folder, options=named)
    target = shared.parent / "secret"
    plants = f"ln -s {shlex.quote(str(target))} /mounted/link && echo planted"
    looks = "ls -d /mounted/link >/dev/null; echo $?; cat /mounted/link/key || echo not there"

    async def body() -> None:
        with engine.control_plane(plants, allocation_id=OTHER) as first, engine.control_plane(looks) as plane:
            async with cleared(engine, OTHER), engine_session(engine) as session:
                await session.engine.launch(engine.spec(first, config=mount(shared)))
                await seen(first, "planted")
                assert (shared / "link/key").read_text() == "secret", "the link leads there outside"
                with pytest.raises(InvalidConfigError, match=rf"mount {shared} itself"):
                    await session.engine.launch(engine.spec(plane, config=mount(shared / "link")))
                await session.engine.launch(engine.spec(plane, config=mount(shared)))
                await seen(plane, "not there")
                said = plane.text()
                assert "0" in said
                assert "secret" not in said

    scenario(body)


def test_a_directory_that_is_mounted_beside_the_code_keeps_what_it_has(
    container_engine: ContainerUnderTest, shared: Path
) -> None:
    options = {"bind_mounts": [str(shared)]}
    engine = ContainerUnderTest(container_engine.service, container_engine.folder, options=options)
    (shared / "dataset").write_text("kept")
    (shared / "dataset").chmod(0o666)
    looks = "cat data/set/dataset code.py; echo; echo more > data/set/more; echo looked"
    beside = {"bind_mounts": [{"host_path": str(shared), "container_path": "data/set"}]}

    async def body() -> None:
        with engine.control_plane(looks, files={"code.py": "code", "data/set/old": ""}) as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane, config=beside))
                await seen(plane, "looked")
                assert plane.text() == ["keptcode", "looked"]
                assert {path.name for path in shared.iterdir()} == {"dataset", "more"}

    scenario(body)


def of_workspaces(shared: Path, *names: str) -> list[Path]:
    """Directories of workspaces in one for checkpoints, as the checkpoints service makes them."""
    made = [shared / "workspaces-c" / name for name in names]
    for path in made:
        path.mkdir(parents=True)
        path.chmod(0o777)
        (path / "state").write_text(f"of {path.name}")
    return made


def test_a_trial_sees_the_checkpoints_of_its_workspace_and_nothing_beside_them(
    container_engine: ContainerUnderTest, shared: Path
) -> None:
    options = {"checkpoint_directories": [str(shared)]}
    engine = ContainerUnderTest(container_engine.service, container_engine.folder, options=options)
    mine, theirs = of_workspaces(shared, "7", "8")
    (shared / "state").write_text("of one from before")
    attempts = (
        f"cat {mine}/state; echo; ls {shared.parent} {shared} {mine.parent}; "
        f"ln -s ../8 {mine}/link; ln -s {theirs} {mine}/absolute; ln -s .. {mine}/up; "
        f"cat {theirs}/state {shared}/state {mine}/link/state {mine}/absolute/state {mine}/up/8/state "
        f"|| echo refused; echo x > {mine}/written; echo x > {theirs}/planted || echo refused; "
        f"mkdir {shared}/planted || echo refused; mv {mine} {shared}/moved || echo refused; echo tried"
    )

    async def body() -> None:
        with (
            engine.control_plane(LISTENS, allocation_id=OTHER) as other,
            engine.control_plane(attempts) as plane,
        ):
            async with cleared(engine, OTHER), engine_session(engine) as session:
                await session.engine.launch(engine.spec(other))
                await seen(other, "listening")
                volume = volume_of(container_engine.service, f"resolute-{CLUSTER[:8]}-{OTHER}-0")
                for config in (
                    storage(volume),
                    storage("/", "etc"),
                    storage(shared.parent, "secret"),
                    storage(shared / ".." / "secret"),
                    mount(volume),
                    mount(shared),
                    mount("/"),
                ):
                    with pytest.raises(InvalidConfigError, match=r"found .*let the operator add it"):
                        await session.engine.launch(engine.spec(plane, config=config))
                for place in (shared, mine.parent, theirs / "state", shared.parent / "secret"):
                    with pytest.raises(AssertionError, match="is not a directory of a workspace"):
                        await session.engine.launch(engine.spec(plane, checkpoint_directory=str(place)))
                # The directory above is named by the config; that of the workspace is mounted.
                config = storage(shared.parent, "shared/team")
                await session.engine.launch(engine.spec(plane, config=config, checkpoint_directory=str(mine)))
                await seen(plane, "tried")
                said = plane.text()
                assert said.count("refused") == 4
                assert "of 7" in said
                assert not [text for text in said if "of 8" in text or "before" in text or text == "8"]
                assert "secret" not in said
                assert (mine / "written").read_text() == "x\n"
                assert sorted(path.name for path in theirs.iterdir()) == ["state"]
                assert sorted(path.name for path in shared.iterdir()) == ["state", "workspaces-c"]

    scenario(body)


def test_while_a_trial_of_an_earlier_release_has_all_checkpoints_nothing_below_them_is_mounted(
    container_engine: ContainerUnderTest, shared: Path
) -> None:
    service = container_engine.service
    options = {"checkpoint_directories": [str(shared)]}
    engine = ContainerUnderTest(service, container_engine.folder, options=options)
    (mine,) = of_workspaces(shared, "7")
    earlier = f"{CLUSTER}-earlier"

    async def body() -> None:
        with engine.control_plane(f"cat {mine}/state; echo; echo read") as plane:
            async with cleared(engine), engine_session(engine) as session:
                label = f"--label=resolute.cluster={CLUSTER}"
                volume = f"--volume={shared}:{shared}"
                service.run("run", "--detach", f"--name={earlier}", label, volume, IMAGE, "sleep", "600")
                spec = engine.spec(plane, config=storage(shared), checkpoint_directory=str(mine))
                try:
                    for _ in range(2):
                        with pytest.raises(QuotaError, match=f"{shared} is mounted into {earlier}"):
                            await session.engine.launch(spec)
                finally:
                    service.run("rm", "--force", earlier)
                await session.engine.launch(spec)
                await seen(plane, "read")
                assert "of 7" in plane.text()

    scenario(body)


def test_the_rule_of_the_page_keeps_trials_from_a_metadata_server(
    podman: PodmanService, podman_engine: ContainerUnderTest
) -> None:
    engine = podman_engine
    (rule,) = re.findall(rf"^iptables .* -I .*{METADATA}.*$", DOCS.read_text(), re.MULTILINE)
    asks = f"""python3 -c '
import socket
try:
    socket.create_connection(("{METADATA}", 80), timeout=3)
    print("reached")
except OSError:
    print("refused")
'; echo asked"""

    async def answer(allocation: str) -> str:
        with engine.control_plane(asks, allocation_id=allocation) as plane:
            async with cleared(engine, allocation), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                await seen(plane, "asked")
                return plane.text()[0]

    async def body() -> None:
        with server(podman, f"{CLUSTER}-cloud", "--subnet=169.254.169.0/24", address=METADATA, port=80):
            assert await answer("allocation-1") == "reached"
            podman.podman.command(shlex.split(rule))
            try:
                assert await answer(OTHER) == "refused"
            finally:
                podman.podman.command(shlex.split(rule.replace(" -I ", " -D ")))

    scenario(body)
