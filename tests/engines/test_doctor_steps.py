"""The steps of `resolute doctor` on engines that answer, against their real daemons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from support.backends import need_module
from support.daemons.kubernetes import UNBOUND_TOKEN, KubernetesCluster, documented_rules
from support.daemons.slurm import NODES, SlurmCluster
from support.engines.containers.docker import running_docker
from support.engines.containers.image import IMAGE
from support.engines.containers.podman import podman_service
from support.waiting import wait_until

need_module("kubernetes_asyncio", remedy="`make engines` installs it")
need_module("aiohttp", remedy="`make engines` installs it")

from resolute_embedded.doctor import Finding, Status  # noqa: E402 - wants what was asked for above
from resolute_embedded.doctor.engines.containers import check_containers  # noqa: E402
from resolute_embedded.doctor.engines.kubernetes import RIGHTS, check_kubernetes  # noqa: E402
from resolute_embedded.doctor.engines.slurm import check_slurm  # noqa: E402
from resolute_engines.container.runtime import runtime_name  # noqa: E402
from resolute_engines.settings import EngineSettings, PoolSettings  # noqa: E402


def engine(kind: str, options: dict[str, Any], **pools: dict[str, Any]) -> EngineSettings:
    """Settings of an engine with pools."""
    given = (PoolSettings(name=name, options=told, where=f"pool {name}") for name, told in pools.items())
    return EngineSettings(name="e", type=kind, options=options, pools=tuple(given))


def by_subject(findings: Any) -> dict[str, Finding]:
    """What was found, by its subject."""
    return {one.subject: one for one in findings}


def test_images_and_files_of_containers(tmp_path: Path) -> None:
    with podman_service(tmp_path) as podman, podman.serving():
        options = {"url": podman.url, "runtime": str(tmp_path)}
        built = "localhost/nowhere:1"
        pools = {
            "here": {"image": IMAGE},
            "built": {"image": built},
            "far": {"image": "registry.example/t:1"},
        }
        found = by_subject(check_containers(engine("container", options, **pools)))
        with_credentials = {**options, "credentials": str(tmp_path / "none")}
        unread = by_subject(check_containers(engine("container", with_credentials, far=pools["far"])))
    assert {subject: one.status for subject, one in found.items()} == {
        "runtime of engine e": Status.FAULT,
        "image of pool here": Status.OK,
        "image of pool built": Status.FAULT,
        "image of pool far": Status.WARNING,
    }
    assert built in found["image of pool built"].detail
    assert "podman pull registry.example/t:1" in found["image of pool far"].remedy
    assert "credentials for registries cannot be read" in unread["image of pool far"].detail


def test_the_runtime_of_another_version_is_told(tmp_path: Path) -> None:
    options = {"url": f"unix://{tmp_path}/nobody.sock", "runtime": str(tmp_path)}
    (tmp_path / "start.sh").touch()
    (tmp_path / "cp311").mkdir()
    for name, status in (("0.0.1-0", Status.WARNING), (runtime_name(), Status.OK)):
        (tmp_path / "cp311" / "name").write_text(name)
        (found,) = check_containers(engine("container", options))
        assert (found.subject, found.status) == ("runtime of engine e", status)


def test_directories_for_checkpoints_in_containers(tmp_path: Path) -> None:
    def found(**options: Any) -> Finding:
        told = {"url": f"unix://{tmp_path}/nobody.sock", "checkpoint_directories": [str(storage)], **options}
        (one,) = check_containers(engine("container", told))
        return one

    storage = tmp_path / "storage"
    absent = found()
    assert (absent.status, str(storage) in absent.remedy) == (Status.FAULT, True)
    assert "install -d -o 10001 -g 10001" in absent.remedy
    storage.mkdir(mode=0o755)
    assert "may not write" in found().detail
    owner = storage.stat()
    assert found(user=f"{owner.st_uid}:{owner.st_gid}").status is Status.OK
    storage.chmod(0o777)
    assert found().status is Status.OK


def test_whether_runs_outlive_the_daemon_of_docker() -> None:
    with running_docker() as docker:
        settings = engine("container", {"url": docker.url}, here={"image": IMAGE})
        before = by_subject(check_containers(settings))
        docker.end_containers_with_daemon()

        def warned() -> Finding | None:
            found = by_subject(check_containers(settings))["restart of engine e"]
            return found if found.status is Status.WARNING else None

        after = wait_until(warned, what="Docker to have its new settings", seconds=60.0, pause=0.1)
    assert {one.status for one in before.values()} == {Status.OK}
    assert set(before) == {"restart of engine e", "image of pool here"}
    assert after is not None
    assert "all runs end" in after.detail
    assert '"live-restore": true' in after.remedy


def test_partitions_of_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    options = {"directory": str(tmp_path), "conf": slurm.environment["SLURM_CONF"]}
    pools = {"batch": {"slot_type": "cpu"}, "none": {"partition": "nowhere"}, "gpus": {}}
    found = by_subject(check_slurm(engine("slurm", options, **pools)))
    assert f"{NODES} of {NODES} nodes" in found["partition of pool batch"].detail
    assert found["partition of pool batch"].status is Status.OK
    assert "partition nowhere has no nodes" in found["partition of pool none"].detail
    assert "no node of the cluster has GPUs" in found["partition of pool gpus"].detail
    assert found["accounting of engine e"].status is Status.OK
    assert "there is none" in found["accounting of engine e"].detail


def test_rights_and_namespace_on_kubernetes(kubernetes: KubernetesCluster, tmp_path: Path) -> None:
    mine = {"kubeconfig": kubernetes.kubeconfig, "namespace": "default"}
    assert [one.status for one in check_kubernetes(engine("kubernetes", mine))] == [Status.OK, Status.OK]

    absent = by_subject(check_kubernetes(engine("kubernetes", {**mine, "namespace": "nowhere"})))
    assert '"nowhere" not found' in absent["namespace of engine e"].detail
    assert "kubectl create namespace nowhere" in absent["namespace of engine e"].remedy

    config = yaml.safe_load(Path(kubernetes.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": UNBOUND_TOKEN}
    strange = tmp_path / "kubeconfig"
    strange.write_text(yaml.safe_dump(config))
    (refused,) = check_kubernetes(engine("kubernetes", {**mine, "kubeconfig": str(strange)}))
    assert refused.status is Status.FAULT
    assert all(f"{verb} {resource}" in refused.detail for resource, verbs in RIGHTS.items() for verb in verbs)


def test_the_rights_that_are_asked_for_are_those_of_the_page() -> None:
    given = {resource: set(rule["verbs"]) for rule in documented_rules() for resource in rule["resources"]}
    assert given == {resource: set(verbs) for resource, verbs in RIGHTS.items()}
