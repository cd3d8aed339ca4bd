"""The settings of engines and pools: what they say, and every fault in them by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_engines.container.settings import ContainerEngineOptions
from resolute_engines.environment import EngineEnvironment
from resolute_engines.local.engine import LocalEngine
from resolute_engines.plugins import create_engine
from resolute_engines.settings import FILE_NAME, parse_options, read_resource_settings, resources_of


def written(folder: Path, text: str) -> Path:
    path = folder / FILE_NAME
    path.write_text(text)
    return path


def environment(folder: Path) -> EngineEnvironment:
    return EngineEnvironment(
        cluster_id="c",
        address="127.0.0.1:1",
        tls=None,
        outage_timeout=3600.0,
        log_wait=10.0,
        runs_directory=folder / "runs",
        slots=2,
        nodes=1,
    )


def test_a_file_without_anything_but_the_local_engine_gives_this_machine_a_name(tmp_path: Path) -> None:
    settings = read_resource_settings(written(tmp_path, "resource_pools: [{pool_name: desk}]"))
    (engine,) = settings.engines
    assert (engine.type, settings.default_pool) == ("local", "desk")
    manager = create_engine(engine, environment(tmp_path))
    assert isinstance(manager, LocalEngine)
    assert [(pool.name, len(pool.slots)) for pool in manager.pools()] == [("desk", 2)]


def test_engines_keep_their_own_options_and_those_of_their_pools(tmp_path: Path) -> None:
    text = """
    default_resource_pool: b
    resource_pools:
      - {pool_name: a, engine: local}
      - {pool_name: b, engine: far, slots: 4}
      - {pool_name: c, engine: far, partition: long}
    engines:
      far: {type: slurm, host: login}
      unused: {type: kubernetes}
    """
    settings = read_resource_settings(written(tmp_path, text))
    assert settings.default_pool == "b"
    far = next(engine for engine in settings.engines if engine.name == "far")
    assert (far.type, far.options) == ("slurm", {"host": "login"})
    assert [(pool.name, pool.options) for pool in far.pools] == [
        ("b", {"slots": 4}),
        ("c", {"partition": "long"}),
    ]
    assert {engine.name for engine in settings.engines} == {"local", "far"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("resource_pools: []", "resource_pools: missing"),
        ("resource_pools: [7]", r"resource_pools\[0\]: found 7"),
        ("resource_pools: [{engine: local}]", r"resource_pools\[0\].pool_name: missing"),
        ("resource_pools: [{pool_name: a}, {pool_name: a}]", "found 'a' more than once"),
        ("resource_pools: [{pool_name: a, engine: b}]", r"resource_pools\[0\].engine: found 'b'; .*: local"),
        ("{default_resource_pool: b, resource_pools: [{pool_name: a}]}", "found 'b'; .*: a"),
        ("{resource_pools: [{pool_name: a, engine: b}], engines: {b: {}}}", "engines.b.type: missing"),
        ("{pools: []}", "pools: .*unknown"),
        ("resource_pools: [", "settings of resource pools are wrong"),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(InvalidArgumentError, match=fault):
        read_resource_settings(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "{resource_pools: [{pool_name: a, engine: b}], engines: {b: {type: c}}}",
            "engines.b.type: found 'c'",
        ),
        ("resource_pools: [{pool_name: a, slots: 3}]", r"resource_pools\[0\].slots: .*unknown"),
        ("resource_pools: [{pool_name: a}, {pool_name: b}]", "this machine is one pool, 'a'"),
        (
            """
            resource_pools: [{pool_name: a, engine: b, slots: 4, slots_per_node: 2}]
            engines: {b: {type: container, url: "unix:///s", networks: false}}
            """,
            r"resource_pools\[0\].slots_per_node: a trial of more than 2 slots has several containers",
        ),
    ],
)
def test_an_engine_refuses_options_that_it_does_not_know(tmp_path: Path, text: str, fault: str) -> None:
    settings = read_resource_settings(written(tmp_path, text))
    (engine,) = settings.engines
    with pytest.raises(InvalidArgumentError, match=fault):
        create_engine(engine, environment(tmp_path))


def test_the_file_is_the_one_that_is_named_or_that_of_the_home_or_none(tmp_path: Path) -> None:
    assert resources_of({}, tmp_path) is None
    path = written(tmp_path, "resource_pools: [{pool_name: desk}]")
    found = resources_of({}, tmp_path)
    assert found is not None
    assert found.default_pool == "desk"
    named = tmp_path / "named.yaml"
    with pytest.raises(InvalidArgumentError, match=r"named.yaml cannot be read: No such file"):
        resources_of({"RESOLUTE_RESOURCE_POOLS": str(named)}, tmp_path)
    named.write_text(path.read_text().replace("desk", "bench"))
    found = resources_of({"RESOLUTE_RESOURCE_POOLS": str(named)}, tmp_path)
    assert found is not None
    assert found.default_pool == "bench"


def test_a_setting_is_accepted_by_its_earlier_name_and_not_by_both() -> None:
    earlier = parse_options(ContainerEngineOptions, {"image_patience": 7}, at="engines.podman")
    assert earlier == parse_options(ContainerEngineOptions, {"image_timeout": 7}, at="engines.podman")
    both = {"image_patience": 7, "image_timeout": 8}
    with pytest.raises(InvalidArgumentError, match=r"engines\.podman\.image_patience: unknown field"):
        parse_options(ContainerEngineOptions, both, at="engines.podman")
