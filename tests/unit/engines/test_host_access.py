"""What of an engine's machine configs may have: what the settings name, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from resolute.errors import InvalidArgumentError, InvalidConfigError
from resolute_config.layer import Layer
from resolute_engines.configs.host_access import HostAccess, named_directory
from resolute_engines.configs.requirements import require
from resolute_engines.container.settings import ContainerEngineOptions
from resolute_engines.settings import parse_options
from resolute_experiments.admission.acceptance import Admission
from resolute_experiments.admission.config_policies import Enforced
from resolute_experiments.admission.pools import PoolsOffered, PoolTerms
from resolute_experiments.admission.preparation import prepare_config

ACCESS = HostAccess(
    where="engines.podman",
    bind_mounts=("/data", "/dev/fuse"),
    checkpoint_directories=("/srv/checkpoints",),
    capabilities=("SYS_PTRACE",),
)


def faults(config: Mapping[str, Any], *, access: HostAccess = ACCESS) -> dict[str, str]:
    try:
        require(config, (access,))
    except InvalidConfigError as error:
        return {one.field: one.description for one in error.violations}
    return {}


def mount(path: str) -> dict[str, Any]:
    return {"bind_mounts": [{"host_path": path, "container_path": "x"}]}


def storage(path: str, below: str | None = None) -> dict[str, Any]:
    return {"checkpoint_storage": {"type": "shared_fs", "host_path": path, "storage_path": below}}


@pytest.mark.parametrize(
    "config",
    [
        {},
        mount("/data"),
        mount("/data/"),
        mount("/data/sets/.."),
        storage("/srv/checkpoints"),
        storage("/srv/checkpoints/team"),
        storage("/srv/checkpoints", "team/a"),
        storage("/srv", "checkpoints"),
        {"checkpoint_storage": {"type": "s3", "bucket": "b"}},
        {"checkpoint_storage": {"type": "directory", "container_path": "/anywhere"}},
        {"environment": {"add_capabilities": ["CAP_SYS_PTRACE"]}},
        {"resources": {"devices": [{"host_path": "/dev/fuse", "container_path": "/dev/fuse"}]}},
    ],
)
def test_what_the_settings_name_is_given(config: dict[str, Any]) -> None:
    assert faults(config) == {}


@pytest.mark.parametrize(
    "path", ["/etc", "/", "/data/../etc", "/database", "//data", "/run/podman/podman.sock"]
)
def test_other_paths_are_refused_with_what_may_be_mounted_and_the_setting(path: str) -> None:
    (reason,) = faults(mount(path)).values()
    assert reason.startswith(f"found {path!r}; the engine lets configs mount /data, /dev/fuse: ")
    assert reason.endswith("engines.podman.bind_mounts")


def test_a_directory_below_a_named_one_is_refused_since_a_trial_can_put_a_link_in_its_place() -> None:
    assert faults(mount("/data/sets")) == {
        "bind_mounts[0].host_path": "found '/data/sets'; mount /data itself, in which it lies, or let the "
        "operator add it to engines.podman.bind_mounts"
    }


@pytest.mark.parametrize(
    ("host_path", "below", "found"),
    [
        (
            "/var/lib/docker/volumes/resolute_state/_data",
            None,
            "/var/lib/docker/volumes/resolute_state/_data",
        ),
        ("/srv", None, "/srv"),
        ("/srv/checkpoints2", None, "/srv/checkpoints2"),
        ("/srv/checkpoints/../keys", None, "/srv/keys"),
        ("/data", "checkpoints", "/data/checkpoints"),
    ],
)
def test_checkpoints_elsewhere_are_refused(host_path: str, below: str | None, found: str) -> None:
    assert faults(storage(host_path, below)) == {
        "checkpoint_storage.host_path": f"found {found!r}; the engine keeps checkpoints in /srv/checkpoints: "
        "name a directory there, or an object store, or let the operator add it to "
        "engines.podman.checkpoint_directories"
    }


def test_the_named_directory_counts_and_not_what_the_config_names() -> None:
    named = ("/other", "/srv/checkpoints")
    assert named_directory(storage("/srv", "checkpoints/x"), named) == "/srv/checkpoints"
    assert named_directory({"checkpoint_storage": {"type": "s3", "bucket": "b"}}, named) is None


def test_only_what_lies_two_below_a_named_directory_is_that_of_a_workspace() -> None:
    assert ACCESS.is_of_a_workspace("/srv/checkpoints/workspaces-c/7")
    for other in (
        "/srv/checkpoints",
        "/srv/checkpoints/workspaces-c",
        "/srv/checkpoints/workspaces-c/7/team",
        "/srv/checkpoints/workspaces-c/..",
        "/srv/checkpoints/../7",
        "/etc/workspaces-c/7",
    ):
        assert not ACCESS.is_of_a_workspace(other)


def test_every_fault_is_told_and_nothing_is_allowed_by_default() -> None:
    asked = {
        **mount("/data"),
        **storage("/srv/checkpoints"),
        "environment": {"add_capabilities": ["SYS_PTRACE"]},
        "resources": {"devices": [{"host_path": "/dev/fuse", "container_path": "/dev/fuse"}]},
    }
    options = ContainerEngineOptions()
    nothing = HostAccess(
        where="engines.podman",
        bind_mounts=options.bind_mounts,
        checkpoint_directories=options.checkpoint_directories,
        capabilities=options.capabilities,
    )
    told = faults(asked, access=nothing)
    assert set(told) == {
        "bind_mounts[0].host_path",
        "checkpoint_storage.host_path",
        "environment.add_capabilities[0]",
        "resources.devices[0].host_path",
    }
    assert all(" nothing: " in reason for reason in told.values())


def test_a_config_that_asks_for_more_is_refused_when_it_is_submitted() -> None:
    pools = PoolsOffered(
        pools=[
            PoolTerms(name="boxes", most_slots=2, largest_node=2, requirements=(ACCESS,)),
            PoolTerms(name="here", most_slots=2, largest_node=2),
        ],
        named=True,
    )
    defaults = storage("/home/own/checkpoints")
    admission = Admission(cluster_defaults=defaults, pools=pools)
    layer = Layer("cluster defaults", defaults)
    config = {
        "name": "n",
        "entrypoint": "true",
        "searcher": {"name": "single", "metric": "loss", "max_length": 1},
    }

    def submitted(**changes: Any) -> Any:
        return prepare_config(json.dumps({**config, **changes}), [layer], admission, Enforced(), False)

    with pytest.raises(
        InvalidConfigError, match=r"checkpoint_storage.host_path: found '/home/own/checkpoints'"
    ):
        submitted()
    assert submitted(resources={"resource_pool": "here"}).resource_pool == "here"
    assert submitted(**storage("/srv/checkpoints")).resource_pool == "boxes"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bind_mounts": ["/data", "/data/sets"]}, "/data/sets lies in /data, where a trial may put a link"),
        ({"bind_mounts": ["/srv/a/b"], "checkpoint_directories": ["/srv"]}, "/srv/a/b lies in /srv"),
        ({"checkpoint_directories": ["/srv/a/b"], "bind_mounts": ["/srv"]}, "/srv/a/b lies in /srv"),
        ({"bind_mounts": ["data"]}, "expected an absolute path"),
        ({"bind_mounts": ["/data/../etc"]}, "expected an absolute path without"),
        ({"checkpoint_directories": ["/srv/"]}, "without a slash at its end"),
        ({"checkpoint_directories": ["/"]}, "a path below /"),
        ({"bind_mounts": [7]}, "expected text"),
    ],
)
def test_settings_whose_directories_cannot_be_kept_apart_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        parse_options(ContainerEngineOptions, options, at="engines.podman")


def test_a_directory_may_be_for_both() -> None:
    options = {"bind_mounts": ["/data", "/database"], "checkpoint_directories": ["/data"]}
    assert parse_options(ContainerEngineOptions, options, at="").checkpoint_directories == ("/data",)
