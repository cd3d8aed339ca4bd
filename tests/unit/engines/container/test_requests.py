"""What Docker's API is asked for, and what of a config is refused by name."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.errors import InvalidArgumentError
from resolute_engines.configs.host_access import HostAccess
from resolute_engines.container import runtime
from resolute_engines.container.files import exit_record, launch_files
from resolute_engines.container.request import ContainerRequest
from resolute_engines.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_engines.protocol import AllocationSpec

NOTHING = HostAccess(where="engines.podman")


def request(
    *,
    access: HostAccess = NOTHING,
    pool: dict[str, Any] | None = None,
    checkpoints: str = "",
    **config: Any,
) -> ContainerRequest:
    return ContainerRequest(
        spec=AllocationSpec(
            allocation_id="t.1",
            placements=((0, 1),),
            address="a:1",
            token="secret-token",
            config=config,
            checkpoint_directory=checkpoints,
        ),
        labels={"resolute.allocation": "t.1"},
        engine=ContainerEngineOptions(),
        pool=ContainerPoolOptions.model_validate({"image": "usual", **(pool or {})}),
        runtime="/runtime",
        access=access,
    )


def body(made: ContainerRequest) -> dict[str, Any]:
    return made.body(0, name="resolute-c-t.1-0", network="net", address="10.0.0.10")


def test_a_container_has_no_rights_beyond_its_own_and_no_secret_in_what_others_can_inspect() -> None:
    made = body(request())
    host = made["HostConfig"]
    assert (host["CapDrop"], host["CapAdd"], host["SecurityOpt"]) == (["ALL"], [], ["no-new-privileges"])
    assert made["User"] == "10001:10001"
    assert "Privileged" not in host
    assert [(one["Source"], one["Target"]) for one in host["Mounts"]] == [
        ("resolute-c-t.1-0", "/resolute"),
        ("/runtime", "/opt/resolute"),
    ]
    assert "secret-token" not in json.dumps(made)


def test_limits_follow_the_slots() -> None:
    pool = {"cpus_per_slot": 0.5, "memory_per_slot": "1 GiB", "pids": 100}
    host = body(request(pool=pool, resources={"shm_size": 4096}))["HostConfig"]
    assert host["NanoCpus"] == 1_000_000_000
    assert host["Memory"] == host["MemorySwap"] == 2 << 30
    assert (host["PidsLimit"], host["ShmSize"]) == (100, 4096)
    assert body(request(pool={"shm_size": "1 GiB"}))["HostConfig"]["ShmSize"] == 1 << 30
    assert body(request())["HostConfig"]["ShmSize"] == 4 << 30


def test_the_image_is_that_of_the_config_for_the_kind_of_slot_or_that_of_the_pool() -> None:
    images = {"image": {"cpu": "for-cpus", "cuda": "for-gpus"}}
    assert request().image == "usual"
    assert request(environment=images).image == "for-cpus"
    gpus = ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]
    made = request(environment=images, pool={"gpus": gpus})
    assert made.image == "for-gpus"
    assert body(made)["HostConfig"]["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": gpus}]
    with pytest.raises(InvalidArgumentError, match=r"environment.image is not given"):
        request(pool={"image": ""}).image  # noqa: B018  # reading it is the act


def test_of_the_machine_a_container_has_what_the_settings_name_and_the_config_asks_for() -> None:
    access = HostAccess(
        where="engines.podman",
        bind_mounts=("/data", "/dev/fuse"),
        checkpoint_directories=("/other", "/checkpoints"),
        capabilities=("SYS_PTRACE", "CAP_SYS_NICE"),
    )
    made = request(
        access=access,
        checkpoints="/checkpoints/workspaces-c/7",
        bind_mounts=[{"host_path": "/data/", "container_path": "sets", "read_only": True}],
        checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints", "storage_path": "team/a"},
        resources={"devices": [{"host_path": "/dev/fuse", "container_path": "/dev/fuse", "mode": "rw"}]},
        environment={
            "add_capabilities": ["CAP_SYS_PTRACE", "sys_nice"],
            "drop_capabilities": ["CAP_SYS_NICE"],
        },
    )
    host = body(made)["HostConfig"]
    assert [(one["Source"], one["Target"], one["ReadOnly"]) for one in host["Mounts"][2:]] == [
        ("/data", "/resolute/mounts/0", True),
        ("/checkpoints/workspaces-c/7", "/checkpoints/workspaces-c/7", False),
    ]
    assert made.links == {"sets": "/resolute/mounts/0"}
    (device,) = host["Devices"]
    assert (device["PathOnHost"], device["CgroupPermissions"]) == ("/dev/fuse", "rw")
    assert host["CapAdd"] == ["SYS_PTRACE"]


def test_ports_are_published_on_the_loopback_interface_of_the_engine() -> None:
    made = body(request(environment={"ports": {"board": 6006}}))
    assert made["HostConfig"]["PortBindings"] == {"6006/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]}


def test_the_launch_order_reaches_its_owner_alone() -> None:
    order = LaunchOrder(allocation_id="t.1", master="a:1", token="secret-token")
    with tarfile.open(fileobj=io.BytesIO(launch_files(order, owner=(10001, 10002)))) as archive:
        entries = {entry.name: entry for entry in archive}
        assert {(entry.uid, entry.gid) for entry in entries.values()} == {(10001, 10002)}
        assert (entries["run"].mode, entries["run/launch.json"].mode) == (0o700, 0o600)
        content = archive.extractfile("run/launch.json")
        assert content is not None
        assert LaunchOrder.from_json(json.load(content)) == order


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"[" * 100_000, b'{"unknown": 1}', b'{"exit_code": "0"}']
)
def test_an_exit_file_that_a_trial_has_spoiled_counts_as_none(content: bytes) -> None:
    assert exit_record(b"no tar") is None
    assert exit_record(packed(content)) is None


def test_an_exit_file_is_read() -> None:
    assert exit_record(packed(b'{"exit_code": 3, "later": true}')) == ExitRecord(exit_code=3)


def packed(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("exit.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def started(folder: Path, *, path: str, **variables: str) -> subprocess.CompletedProcess[str]:
    script = folder / "start.sh"
    script.write_text(Path(runtime.__file__).with_name("start.sh").read_text())
    command = ["/bin/sh", str(script), "this"]
    return subprocess.run(
        command, env={"PATH": path, **variables}, capture_output=True, text=True, check=False
    )


def test_an_image_without_python_is_told_so(tmp_path: Path) -> None:
    done = started(tmp_path, path=str(tmp_path))
    assert (done.returncode, "the image has no Python" in done.stderr) == (127, True)


def test_an_image_whose_python_is_too_old_is_told_so_and_not_to_make_a_runtime_for_it(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(sys.executable)
    # What is asked is the interpreter that runs the tests, told that it is another.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.version_info = (3, 9, 2, 'final', 0)\n")
    done = started(tmp_path, path=f"{tmp_path}/bin:{os.environ['PATH']}", PYTHONPATH=str(tmp_path))
    assert done.returncode == 126
    assert "a trial wants python3, 3.10 or newer" in done.stderr
    assert "make one for it" not in done.stderr


def test_an_image_with_a_python_that_the_runtime_was_not_made_for_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(sys.executable)
    (tmp_path / "cp38").mkdir()
    done = started(tmp_path, path=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert done.returncode == 126
    assert f"Python {sys.version.split()[0]}, and the engine's runtime has cp38" in done.stderr


def test_runtimes_that_no_container_has_are_removed(tmp_path: Path) -> None:
    for name in ("old", "used", "now"):
        (tmp_path / name / "cp311").mkdir(parents=True)
    runtime.remove_others(tmp_path / "now", used={str(tmp_path / "used")})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["now", "used"]


def test_a_runtime_that_a_container_has_by_another_path_is_kept(tmp_path: Path) -> None:
    for name in ("old", "used", "now"):
        (tmp_path / "real" / name).mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "real")
    runtime.remove_others(tmp_path / "home/now", used={str(tmp_path / "real/used")})
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["now", "used"]
