"""Each field of a config has its effect in the pool that it names, is warned of, or is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.backends import need_module

from resolute.errors import InvalidConfigError
from resolute_config.layer import Layer
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.settings import FILE_NAME, read_resource_settings
from resolute_experiments.admission.acceptance import Accepted, Admission
from resolute_experiments.admission.config_policies import Enforced
from resolute_experiments.admission.pools import PoolsOffered
from resolute_experiments.admission.preparation import prepare_config
from resolute_experiments.allocations.pools import terms_of

SETTINGS = """
resource_pools:
  - {pool_name: desk}
  - {pool_name: boxes, engine: box, slots: 2}
  - {pool_name: batch, engine: hpc, slot_type: cpu, slots_per_node: 4, max_slots: 8}
  - {pool_name: gpus, engine: hpc, slots_per_node: 4, nice_per_priority: 10, max_slots: 8}
  - {pool_name: pods, engine: kube}
  - {pool_name: classes, engine: kube, priority_classes: [{name: batch}]}
  - {pool_name: actors, engine: ray, max_slots: 8}
engines:
  box: {type: container, runtime: /opt/runtime}
  hpc: {type: slurm, directory: /shared/runs}
  kube: {type: kubernetes}
  ray: {type: ray, address: "head:6379"}
"""
STORAGE = {"checkpoint_storage": {"type": "directory", "container_path": "/c"}}


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> PoolsOffered:
    """Pools of every engine, as their settings open them."""
    need_module("kubernetes_asyncio", remedy="`make engines` installs it")
    folder = tmp_path_factory.mktemp("settings")
    (folder / FILE_NAME).write_text(SETTINGS)
    environment = EngineEnvironment(
        cluster_id="0123456789",
        address="127.0.0.1:1",
        tls=None,
        outage_timeout=3600.0,
        log_wait=10.0,
        runs_directory=folder,
        slots=2,
        nodes=1,
    )
    engines = [create_engine(one, environment) for one in read_resource_settings(folder / FILE_NAME).engines]
    return PoolsOffered(
        pools=[terms_of(pool, named=True, engine=engine) for engine in engines for pool in engine.pools()],
        named=True,
    )


def warned(offered: PoolsOffered, pool: str, **config: Any) -> dict[str, str]:
    """What is said of fields without an effect, by path."""
    return dict(warning.split(" has no effect: ") for warning in accepted(offered, pool, **config).warnings)


def accepted(offered: PoolsOffered, pool: str, **config: Any) -> Accepted:
    """What becomes of a config."""
    resources = {"resource_pool": pool, **config.pop("resources", {})}
    content = {
        "name": "n",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss"},
        "resources": resources,
        **config,
    }
    admission = Admission(cluster_defaults=STORAGE, pools=offered)
    layers = [Layer("cluster defaults", STORAGE)]
    prepared = prepare_config(json.dumps(content), layers, admission, Enforced(), test_mode=False)
    assert prepared.resource_pool == pool
    return prepared


@pytest.mark.parametrize("pool", ["desk", "boxes", "batch", "gpus", "pods", "classes", "actors"])
def test_a_pool_that_is_named_is_never_said_to_be_without_effect(offered: PoolsOffered, pool: str) -> None:
    assert warned(offered, pool) == {}


@pytest.mark.parametrize(
    ("pool", "remedy"),
    [
        ("batch", "; nice_per_priority of the pool passes it on"),
        ("pods", "; priority_classes of the pool passes it on"),
        ("actors", ""),
    ],
)
def test_a_priority_that_ends_where_the_engine_s_queue_begins_is_warned_of(
    offered: PoolsOffered, pool: str, remedy: str
) -> None:
    said = warned(offered, pool, resources={"priority": 7, "weight": 2})
    assert set(said) == {"resources.priority", "resources.weight"}
    assert said["resources.priority"].endswith(f"was given a trial, its own queue decides{remedy}")


@pytest.mark.parametrize("pool", ["desk", "boxes", "gpus", "classes"])
def test_a_priority_that_is_honoured_is_not_warned_of(offered: PoolsOffered, pool: str) -> None:
    assert warned(offered, pool, resources={"priority": 7}) == {}


@pytest.mark.parametrize("pool", ["boxes", "batch", "pods", "actors"])
def test_warm_starts_are_of_this_machine_alone(offered: PoolsOffered, pool: str) -> None:
    warm = {"environment": {"warm_start": True}}
    assert set(warned(offered, pool, **warm)) == {"environment.warm_start.enabled"}
    assert warned(offered, "desk", **warm) == {}


@pytest.mark.parametrize(("pool", "engine"), [("pods", "Kubernetes"), ("actors", "Ray")])
def test_what_an_engine_removes_cannot_be_held(offered: PoolsOffered, pool: str, engine: str) -> None:
    fault = (
        rf"on_failure: found .*; {engine}, the engine of pool '{pool}', removes .* of containers or of Slurm"
    )
    with pytest.raises(InvalidConfigError, match=fault):
        accepted(offered, pool, on_failure={"hold": 60})
    assert accepted(offered, pool, on_failure=None).warnings == ()


@pytest.mark.parametrize("pool", ["desk", "boxes", "batch"])
def test_what_other_engines_keep_is_held(offered: PoolsOffered, pool: str) -> None:
    assert warned(offered, pool, on_failure={"hold": 60}) == {}


@pytest.mark.parametrize("slots", [1, 8])
@pytest.mark.parametrize(
    ("pool", "section", "fault"),
    [
        ("gpus", {"slots_per_node": 2}, r"slurm\.slots_per_node: found 2; pool 'gpus' gives 4 slots"),
        ("batch", {"gpu_type": "a100"}, r"slurm\.gpu_type: found 'a100'; the slots of pool 'batch' are proc"),
    ],
)
def test_what_a_pool_of_slurm_does_not_give_is_refused_at_submission(
    offered: PoolsOffered, pool: str, section: dict[str, Any], fault: str, slots: int
) -> None:
    with pytest.raises(InvalidConfigError, match=fault):
        warned(offered, pool, slurm=section, resources={"slots_per_trial": slots})


def test_what_a_pool_of_slurm_gives_is_taken(offered: PoolsOffered) -> None:
    assert warned(offered, "gpus", slurm={"slots_per_node": 4, "gpu_type": "a100"}) == {}
    assert set(warned(offered, "pods", slurm={"slots_per_node": 2})) == {"slurm.slots_per_node"}


@pytest.mark.parametrize(
    ("path", "mounted", "told"),
    [
        ("/srv/a", None, True),
        ("/srv/a", "/srv/ab", True),
        ("/srv/a", "/srv/a/", False),
        ("/srv/a", "/srv", False),
    ],
)
def test_checkpoints_that_only_a_pod_would_see_are_warned_of(
    offered: PoolsOffered, path: str, mounted: str | None, told: bool
) -> None:
    mounts = [{"name": "s", "mountPath": mounted}] if mounted else []
    container = {"name": "determined-container", "volumeMounts": mounts}
    config = {
        "checkpoint_storage": {"type": "shared_fs", "host_path": path},
        "environment": {"pod_spec": {"spec": {"containers": [container], "volumes": [{"name": "s"}]}}},
    }
    said = accepted(offered, "pods", **config).warnings
    assert [one.partition(":")[0] for one in said] == ["checkpoint_storage.host_path"] * told


@pytest.mark.parametrize("pool", ["batch", "pods", "actors"])
def test_nodes_are_not_excluded_where_the_engine_chooses_them(offered: PoolsOffered, pool: str) -> None:
    policies = [
        {"pattern": "a", "action": "cancel_retries"},
        {"pattern": "b", "action": {"type": "exclude_node"}},
    ]
    with pytest.raises(
        InvalidConfigError, match=r"log_policies\[1\]\.action\.type: found 'exclude_node'; .* chooses"
    ):
        warned(offered, pool, log_policies=policies)
    assert warned(offered, "desk", log_policies=policies) == {}
    assert warned(offered, pool, log_policies=policies[:1]) == {}


def test_lengths_in_steps_are_told_by_one_warning(offered: PoolsOffered) -> None:
    searcher = {"name": "single", "metric": "loss", "max_steps": 10}
    prepared = accepted(offered, "pods", searcher=searcher, batches_per_step=20)
    said = [one for one in prepared.warnings if "were converted" in one]
    assert len(said) == 1
    assert "searcher.max_steps: 10 is searcher.max_length: {batches: 200}" in said[0]


@pytest.mark.parametrize("pool", ["desk", "boxes", "batch", "gpus", "pods", "actors"])
def test_only_the_pool_of_this_machine_has_its_packages(offered: PoolsOffered, pool: str) -> None:
    assert accepted(offered, pool).runs_here is (pool == "desk")
