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
from resolute_experiments.resources.container import runtime
from resolute_experiments.resources.container.files import exit_record, launch_files
from resolute_experiments.resources.container.request import ContainerRequest
from resolute_experiments.resources.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_experiments.resources.protocol import AllocationSpec


def request(
    *, engine: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **config: Any
) -> ContainerRequest:
    return ContainerRequest(
        spec=AllocationSpec(
            allocation_id="t.1", placements=((0, 1),), address="a:1", token="secret-token", config=config
        ),
        labels={"resolute.allocation": "t.1"},
        engine=ContainerEngineOptions.model_validate(engine or {}),
        pool=ContainerPoolOptions.model_validate({"image": "usual", **(pool or {})}),
        runtime="/runtime",
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


def test_a_shared_directory_of_checkpoints_is_where_it_is_outside() -> None:
    made = request(checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"})
    mount = body(made)["HostConfig"]["Mounts"][-1]
    assert (mount["Source"], mount["Target"], mount["ReadOnly"]) == ("/checkpoints", "/checkpoints", False)


def test_directories_that_the_settings_allow_are_mounted() -> None:
    mounts = [{"host_path": "/data/sets", "container_path": "sets", "read_only": True}]
    made = request(engine={"bind_mounts": ["/data"]}, bind_mounts=mounts)
    mount = body(made)["HostConfig"]["Mounts"][-1]
    assert (mount["Source"], mount["Target"]) == ("/data/sets", "/resolute/run/work/sets")
    assert mount["ReadOnly"]


@pytest.mark.parametrize("path", ["/etc", "/data/../etc", "/database", "/run/podman/podman.sock"])
def test_other_directories_are_refused_by_name(path: str) -> None:
    made = request(
        engine={"bind_mounts": ["/data"]}, bind_mounts=[{"host_path": path, "container_path": "/x"}]
    )
    with pytest.raises(InvalidArgumentError, match=r"bind_mounts\[0\].host_path: .* mount /data"):
        body(made)


def test_devices_and_capabilities_are_refused_unless_the_settings_allow_them() -> None:
    devices = [{"host_path": "/dev/fuse", "container_path": "/dev/fuse", "mode": "rw"}]
    with pytest.raises(InvalidArgumentError, match=r"resources.devices\[0\].host_path"):
        body(request(resources={"devices": devices}))
    made = body(request(engine={"bind_mounts": ["/dev/fuse"]}, resources={"devices": devices}))
    assert made["HostConfig"]["Devices"][0]["CgroupPermissions"] == "rw"
    with pytest.raises(InvalidArgumentError, match=r"found 'SYS_ADMIN'; .* allow none"):
        body(request(environment={"add_capabilities": ["CAP_SYS_ADMIN"]}))
    allowed = request(
        engine={"capabilities": ["SYS_PTRACE"]}, environment={"add_capabilities": ["SYS_PTRACE"]}
    )
    assert body(allowed)["HostConfig"]["CapAdd"] == ["SYS_PTRACE"]


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


def started(folder: Path, *, path: str) -> subprocess.CompletedProcess[str]:
    script = folder / "start.sh"
    script.write_text(Path(runtime.__file__).with_name("start.sh").read_text())
    command = ["/bin/sh", str(script), "this"]
    return subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=False)


def test_an_image_without_python_is_told_so(tmp_path: Path) -> None:
    done = started(tmp_path, path=str(tmp_path))
    assert (done.returncode, "the image has no Python" in done.stderr) == (127, True)


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
