"""The compose file: services of the image, with settings that fit together and with what is prepared.

`make compose-demo` runs it, with images that stand in for those of PostgreSQL and of the object store.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from compose_demo.stages import STAGES

from resolute_embedded.apart.environment import FILES_VARIABLE
from resolute_embedded.apart.preparation import prepare
from resolute_experiments.resources.engine_environment import EngineEnvironment
from resolute_experiments.resources.registry import open_engine
from resolute_experiments.resources.settings import read_resource_settings
from resolute_serving.server.settings import SERVICE_NAMES

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load(
    re.sub(r"\$\{\w+:[-?]([^}]*)\}", r"\1", (ROOT / "deploy/compose.yaml").read_text())
)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = (*SERVICE_NAMES, "gateway")
POOLS = "/etc/resolute/pools.yaml"
STAND_INS: dict[str, Any] = yaml.safe_load((ROOT / "tools/compose_demo/stand_ins/compose.yaml").read_text())


def test_every_service_of_the_image_runs_at_the_port_at_which_the_others_call_it() -> None:
    assert set(SERVICES) == {"prepare", "database", "store", "tokens", *OURS}
    for name in SERVICE_NAMES:
        service = SERVICES[name]
        assert service["command"] == [name, "--upgrade"]
        port = service["environment"]["RESOLUTE_PORT"]
        for other in OURS:
            assert SERVICES[other]["environment"][f"RESOLUTE_{name.upper()}_ADDRESS"] == f"{name}:{port}"
    assert SERVICES["gateway"]["command"] == ["gateway"]


def test_every_setting_is_one_that_the_services_know() -> None:
    known = {
        *re.findall(
            r"RESOLUTE_[A-Z0-9_]+", "".join(path.read_text() for path in (ROOT / "services").rglob("*.py"))
        ),
        *(f"RESOLUTE_{name.upper()}_ADDRESS" for name in SERVICE_NAMES),
    }
    for name in (*OURS, "tokens"):
        assert set(SERVICES[name]["environment"]) <= known


def test_what_settings_and_mounts_name_is_prepared(tmp_path: Path) -> None:
    names = re.findall(r"--name ([a-z]+)", SERVICES["prepare"]["entrypoint"][-1])
    assert set(OURS) < set(names), "each service is called by its name, which its certificate must have"
    prepare(tmp_path, names=names)
    # The one file that its shell writes.
    assert f"/etc/resolute/pools.new {POOLS}" in SERVICES["prepare"]["entrypoint"][-1]
    assert SERVICES["experiments"]["environment"]["RESOLUTE_RESOURCE_POOLS"] == POOLS
    for name in (*OURS, "tokens"):
        files = [
            part
            for variable, value in SERVICES[name]["environment"].items()
            for part in (str(value).split(":") if variable == FILES_VARIABLE else [str(value)])
        ]
        named = [re.sub(r"^.*passfile=", "", file) for file in files]
        for file in named:
            if file.startswith("/etc/resolute/") and file != POOLS:
                assert (tmp_path / file.removeprefix("/etc/resolute/")).is_file(), f"{name}: {file}"
    folders = {mount.partition(":")[::2] for mount in SERVICES["prepare"]["volumes"]}
    for folder in tmp_path.iterdir():
        if folder.is_dir():
            assert (f"{folder.name}-secret", f"/etc/resolute/{folder.name}") in folders
    assert SERVICES["database"]["environment"]["POSTGRES_PASSWORD_FILE"] == "/run/database/password"
    assert (tmp_path / "database/password").is_file()
    assert (tmp_path / "store/keys.env").is_file()


def test_a_secret_is_seen_by_whom_it_is_for_alone() -> None:
    for name, service in SERVICES.items():
        seen = {
            mount.partition(":")[0]
            for mount in service.get("volumes", ())
            if mount.partition(":")[0].endswith("-secret")
        }
        expected = {
            "prepare": {"database-secret", "store-secret", "checkpoints-secret", "authority-secret"},
            "database": {"database-secret"},
            "store": {"store-secret"},
            "checkpoints": {"checkpoints-secret"},
        }
        assert seen == expected.get(name, set())


def test_services_of_ours_have_no_rights_and_a_root_that_nobody_writes_to() -> None:
    for name in (*OURS, "tokens", "prepare"):
        service = SERVICES[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges"]
        assert ("cap_add" in service) == (name == "prepare")


def test_trials_run_by_the_engine_whose_socket_is_mounted(tmp_path: Path) -> None:
    content = SERVICES["prepare"]["environment"]["POOLS"].replace("services_certificate: /etc/", "# ")
    (tmp_path / "pools.yaml").write_text(content)
    (engine,) = read_resource_settings(tmp_path / "pools.yaml").engines
    socket = str(engine.options["url"]).removeprefix("unix://")
    assert any(mount.endswith(f":{socket}") for mount in SERVICES["experiments"]["volumes"])
    environment = EngineEnvironment(
        cluster_id="a",
        address="",
        tls=None,
        outage_timeout=1.0,
        log_wait=1.0,
        runs_directory=tmp_path,
        slots=None,
        nodes=1,
    )
    (pool,) = open_engine(engine, environment).pools()
    assert (pool.name, len(pool.slots)) == ("default", 2)


def test_every_volume_is_declared_by_a_name_that_no_other_begins_with() -> None:
    named = {
        mount.partition(":")[0]
        for service in SERVICES.values()
        for mount in service.get("volumes", ())
        if not mount.startswith("/")
    }
    assert named == set(COMPOSE["volumes"])
    assert not [(a, b) for a in named for b in named if a != b and a.startswith(b)]


def test_an_image_that_stands_in_replaces_how_a_service_starts_and_nothing_else() -> None:
    assert set(STAND_INS) == {"services"}
    for name, changed in STAND_INS["services"].items():
        assert set(changed) == {"entrypoint"}, name
        assert name in {"database", "store"}
        _, script = changed["entrypoint"]
        text = (ROOT / "tools/compose_demo/stand_ins" / Path(script).name).read_text()
        for mount in SERVICES[name]["volumes"]:
            _, path, *_ = mount.split(":")
            variables = "".join(
                f"{one}={value}" for one, value in SERVICES[name].get("environment", {}).items()
            )
            assert path in text + variables, f"{name} has {path}, which its stand-in does not use"


def test_the_demonstration_starts_a_service_after_what_it_needs() -> None:
    started: set[str] = set()
    ended: set[str] = set()
    for stage in STAGES:
        for name in stage.services:
            for needed, how in SERVICES[name]["depends_on"].items():
                there = ended if how["condition"] == "service_completed_successfully" else started
                assert needed in there, f"{name} starts before {needed}"
            assert (SERVICES[name].get("restart") == "no") == (name in stage.ends)
        started.update(stage.services)
        ended.update(stage.ends)
    assert started == set(SERVICES)
