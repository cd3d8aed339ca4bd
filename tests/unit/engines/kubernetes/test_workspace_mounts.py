"""Pods see of a directory for checkpoints what is of their trial's workspace, and nothing by another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.engines.kubernetes.test_requests import containers, request

from resolute.errors import InvalidArgumentError, InvalidConfigError
from resolute_engines.kubernetes.pods import CONTAINER, SENDER
from resolute_engines.kubernetes.settings import KubernetesPoolOptions
from resolute_engines.settings import parse_options

DIRECTORY, OWN = "/srv/checkpoints", "/srv/checkpoints/workspaces-c/3"


def pool(**mount: Any) -> dict[str, Any]:
    """A pool whose pod_spec mounts a claim with checkpoints, and another with data."""
    mounts = [
        {"name": "checkpoints", "mountPath": DIRECTORY, **mount},
        {"name": "data", "mountPath": "/data"},
    ]
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"claim-of-{name}"}}
        for name in ("checkpoints", "data")
    ]
    spec = {"containers": [{"name": CONTAINER, "volumeMounts": mounts}], "volumes": volumes}
    return {"pod_spec": {"spec": spec}, "checkpoint_directories": [DIRECTORY]}


def mounts(directory: str, settings: dict[str, Any], **config: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """The mounts of each container by their paths, without the platform's own."""
    made = request(pool=settings, **config)
    found = containers(replace(made, spec=replace(made.spec, checkpoint_directory=directory)))
    return {
        name: {
            mount["mountPath"]: mount
            for mount in container["volumeMounts"]
            if not mount["name"].startswith("resolute-")
        }
        for name, container in found.items()
    }


@pytest.mark.parametrize(("given", "below"), [("", "workspaces-c/3"), ("all", "all/workspaces-c/3")])
def test_the_directory_of_the_workspace_alone_is_mounted_in_every_container(given: str, below: str) -> None:
    settings = pool(subPath=given) if given else pool()
    for name in (CONTAINER, SENDER):
        found = mounts(OWN, settings)[name]
        assert found.keys() == {OWN, "/data"}
        assert found[OWN] == {"name": "checkpoints", "mountPath": OWN, "subPath": below}


def test_a_trial_whose_checkpoints_lie_elsewhere_sees_none_of_it() -> None:
    assert mounts("", pool())[CONTAINER].keys() == {"/data"}
    assert mounts("/other/workspaces-c/3", pool())[CONTAINER].keys() == {"/data"}


def test_without_such_directories_a_pod_is_as_its_pod_spec_says() -> None:
    settings = {**pool(), "checkpoint_directories": []}
    assert mounts("", settings)[CONTAINER].keys() == {DIRECTORY, "/data"}


@pytest.mark.parametrize("path", [DIRECTORY, f"{DIRECTORY}/", "/elsewhere"])
def test_no_config_mounts_the_claim_with_all_checkpoints(path: str) -> None:
    volume = {"name": "mine", "persistentVolumeClaim": {"claimName": "claim-of-checkpoints"}}
    spec = {
        "containers": [{"name": CONTAINER, "volumeMounts": [{"name": "mine", "mountPath": path}]}],
        "volumes": [volume],
    }
    with pytest.raises(
        InvalidConfigError, match=r"claimName: 'claim-of-checkpoints' has the checkpoints of all workspaces"
    ):
        mounts(OWN, pool(), environment={"pod_spec": {"spec": spec}})
    volume["persistentVolumeClaim"] = {"claimName": "claim-of-data"}
    assert OWN in mounts(OWN, pool(), environment={"pod_spec": {"spec": spec}})[CONTAINER]


@pytest.mark.parametrize(
    "settings",
    [
        {"checkpoint_directories": [DIRECTORY]},
        {**pool(), "checkpoint_directories": ["/srv/other"]},
        pool(subPathExpr="$(NAME)"),
        {**pool(), "checkpoint_directories": [f"{DIRECTORY}/"]},
    ],
)
def test_a_directory_that_no_pod_spec_mounts_is_refused_in_the_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="checkpoint_directories"):
        parse_options(KubernetesPoolOptions, settings, at="resource_pools[0]")
