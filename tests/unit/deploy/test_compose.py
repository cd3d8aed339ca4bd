"""The compose file: services of the image, with settings that fit together and with what is prepared.

`make compose-demo` runs it, with images that stand in for those of PostgreSQL and of the object store.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml
from compose_demo.stages import STAGES
from image_build.rootfs import USER
from support.pages.commands import blocks_of

from resolute_embedded.apart.environment import FILES_VARIABLE
from resolute_embedded.apart.preparation import prepare
from resolute_engines.container.settings import ContainerPoolOptions
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.settings import read_resource_settings
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
            r"RESOLUTE_[A-Z0-9_]+",
            "".join(
                path.read_text() for each in ("engines", "services") for path in (ROOT / each).rglob("*.py")
            ),
        ),
        *(f"RESOLUTE_{name.upper()}_ADDRESS" for name in SERVICE_NAMES),
    }
    for name in (*OURS, "tokens"):
        assert set(SERVICES[name]["environment"]) <= known


def test_what_settings_and_mounts_name_is_prepared(tmp_path: Path) -> None:
    names = re.findall(r"--name ([a-z]+)", SERVICES["prepare"]["entrypoint"][-1])
    assert set(names) == set(SERVICE_NAMES), "each is called by its name, which its certificate must have"
    gateway_names = re.findall(r"--gateway ([a-z]+)", SERVICES["prepare"]["entrypoint"][-1])
    assert "gateway" in gateway_names
    prepare(tmp_path, names=names, gateway_names=gateway_names)
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
        seen = tmp_path / "gateway" if name == "gateway" else tmp_path
        for file in named:
            if file.startswith("/etc/resolute/") and file != POOLS:
                assert (seen / file.removeprefix("/etc/resolute/")).is_file(), f"{name}: {file}"
    folders = {mount.partition(":")[::2] for mount in SERVICES["prepare"]["volumes"]}
    for folder in tmp_path.iterdir():
        if folder.is_dir():
            assert (f"{folder.name}-secret", f"/etc/resolute/{folder.name}") in folders
    assert SERVICES["database"]["environment"]["POSTGRES_PASSWORD_FILE"] == "/run/database/password"
    assert (tmp_path / "database/password").is_file()
    assert (tmp_path / "store/keys.env").is_file()


def test_a_service_sees_its_own_state_and_the_secrets_that_are_for_it() -> None:
    states = {f"{name}-state" for name in SERVICE_NAMES}
    database = {"database-socket", "database-secret"}
    services = {name: {"settings", *database, f"{name}-state"} for name in SERVICE_NAMES}
    services["preemption"] -= database
    services["checkpoints"].add("checkpoints-secret")
    secrets = {f"{name}-secret" for name in ("database", "store", "checkpoints", "authority", "gateway")}
    expected = {
        "prepare": {"settings", *secrets, *states},
        "tokens": {"settings", *database, *states},
        "database": {"postgresql", "database-socket", "database-secret"},
        "store": {"objects", "store-secret"},
        "gateway": {"gateway-secret"},
        **services,
    }
    for name, service in SERVICES.items():
        assert {mount.partition(":")[0] for mount in service["volumes"] if mount[0] != "/"} == expected[name]


def test_the_database_is_reached_by_its_socket_alone() -> None:
    assert SERVICES["database"]["network_mode"] == "none"
    without = {name for name in OURS if "RESOLUTE_DATABASE_URL" not in SERVICES[name]["environment"]}
    assert without == {"gateway", "preemption"}
    for name in {*OURS, "tokens"} - without:
        assert "host=/run/postgresql&" in SERVICES[name]["environment"]["RESOLUTE_DATABASE_URL"]
        assert "database-socket:/run/postgresql:ro" in SERVICES[name]["volumes"]


def test_only_what_has_open_ports_listens_in_a_network_that_trials_reach() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name, service in SERVICES.items():
        if name == "database":
            continue
        beside = set(service["networks"]) - {"inside"}
        assert ("front" in beside) == ("ports" in service), name
        if own := beside - {"front"}:
            assert own == {f"{name}-out"}
            # Podman may forget that it isolates this network: what is in it listens in the other alone.
            (alias,) = service["networks"]["inside"]["aliases"]
            assert service["environment"]["RESOLUTE_HOST"] == alias != name
            # Podman's rules for an open port lead to any of the networks that are not internal.
            assert "ports" not in service


def test_trials_are_another_user_than_the_services() -> None:
    (engine,) = yaml.safe_load(SERVICES["prepare"]["environment"]["POOLS"])["engines"].values()
    assert engine["user"] != f"{USER}:{USER}"


def test_services_and_the_store_have_no_rights_and_a_root_that_nobody_writes_to() -> None:
    for name in (*OURS, "tokens", "prepare", "store"):
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
    (pool,) = create_engine(engine, environment).pools()
    assert (pool.name, len(pool.slots)) == ("default", 2)


def test_a_pool_has_the_slots_and_the_limits_that_variables_give() -> None:
    given = {"RESOLUTE_SLOTS": "8", "RESOLUTE_CPUS_PER_SLOT": "1.5", "RESOLUTE_MEMORY_PER_SLOT": "4 GiB"}
    text = (ROOT / "deploy/compose.yaml").read_text()
    for name, value in given.items():
        text = re.sub(rf"\$\{{{name}:-\w+\}}", value, text)
    pools = yaml.safe_load(yaml.safe_load(text)["services"]["prepare"]["environment"]["POOLS"])
    (pool,) = pools["resource_pools"]
    options = ContainerPoolOptions.model_validate(
        {name: pool[name] for name in ("slots", "cpus_per_slot", "memory_per_slot")}
    )
    assert (options.slots, options.cpus_per_slot, options.memory_per_slot) == (8, 1.5, 4 << 30)


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


def test_the_settings_are_those_of_the_head_of_the_file_and_of_its_page() -> None:
    text, page = (ROOT / "deploy/compose.yaml").read_text(), (ROOT / "docs/compose.md").read_text()
    head, _, _ = text.partition("\nname: ")
    used = set(re.findall(r"\$\{(RESOLUTE_\w+)", text))
    assert set(re.findall(r"RESOLUTE_\w+", head)) == used
    rows = [line for line in page.splitlines() if line.startswith("| `RESOLUTE_")]
    assert set(re.findall(r"`(RESOLUTE_\w+)`", "".join(rows))) == used
    written = set(re.findall(r"^(RESOLUTE_\w+)=", page, re.MULTILINE))
    assert written <= used
    assert "deploy/.env" in (ROOT / ".gitignore").read_text()


def test_a_value_by_default_is_the_same_throughout_the_file() -> None:
    found = re.findall(r"\$\{(RESOLUTE_\w+):-([^}]*)\}", (ROOT / "deploy/compose.yaml").read_text())
    assert len(dict(found)) == len(set(found))


def test_the_commands_of_the_page_are_bash_that_wants_no_terminal() -> None:
    blocks = blocks_of("docs/compose.md")
    assert len(blocks) == 4
    for block in blocks:
        subprocess.run(["bash", "-n", "-c", block.code], check=True)
        for command in re.findall(r"docker compose [^;)|\n]*", block.code):
            # With a terminal what is printed would end with a carriage return.
            assert "exec" not in command.split() or "-T" in command.split(), command
            assert "cp" not in command.split(), "podman-compose has none"
        for targets in re.findall(r"^make (.*)$", block.code, re.MULTILINE):
            subprocess.run(["make", "--dry-run", *targets.split()], cwd=ROOT, check=True, capture_output=True)
