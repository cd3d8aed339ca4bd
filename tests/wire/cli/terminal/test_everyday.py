"""`top`, `open`, `config`, `help errors`, and what is submitted and downloaded without being told."""

from __future__ import annotations

import json
import math
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.experiments.test_create import names
from wire.cli.experiments.test_metrics import reporting
from wire.cli.scripted import ScriptedCluster

from resolute import errors
from resolute.api.experiments.v1 import cluster_service_pb2, machine_usage_pb2
from resolute.cli.cluster.top import rate
from resolute.cli.registry.error_reasons import ERROR_REASONS
from resolute.client import Client
from resolute.client.schema.records import SeriesPoint
from resolute.errors import NotFoundError


def test_top_shows_the_trials_that_hold_slots(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial = reporting(cluster)
    holder = cluster_service_pb2.SlotHolder(allocation_id="a", trial_number=trial.number)
    cluster.state.slots += [
        cluster_service_pb2.Slot(slot_id=0, holder=holder),
        cluster_service_pb2.Slot(slot_id=1),
    ]
    cluster.state.problems.append("the disk of /data is full")
    found = json.loads(resolute("top", "--json").out)
    assert (found["slots"], found["slots_in_use"]) == (2, 1)
    (activity,) = found["trials"]
    assert (activity["trial"], activity["slots"], activity["steps"]) == (trial.number, 1, 10)
    assert activity["steps_per_second"] > 0
    shown = resolute("top", "--once").out
    assert shown.startswith("1 of 2 slots in use, ")
    assert "warning: the disk of /data is full" in shown
    assert shown.splitlines()[-1].split()[:2] == ["1", "1"]


def test_machines_are_shown_by_trial_and_by_node(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial = reporting(cluster)
    holder = cluster_service_pb2.SlotHolder(allocation_id="a", trial_number=trial.number)
    cluster.state.slots.append(cluster_service_pb2.Slot(slot_id=0, holder=holder))
    assert resolute("trial", "machine", str(trial.number)).code == 0
    assert "Node" not in resolute("top", "--once").out
    series = {
        "cpu": [10.0, 30.0],
        "memory": [50.0, 50.0],
        "net_sent": [2048.0, 1024.0],
        "GPU-1.gpu_util": [80.0, 90.0],
        "GPU-2.gpu_util": [70.0, math.nan],
        "GPU-1.gpu_temperature": [60.0, 71.0],
        "GPU-2.gpu_temperature": [60.0, 66.0],
        "GPU-1.gpu_nvlink_sent": [0.0, 4096.0],
        "GPU-1.77.gpu_process_memory": [0.0, 2048.0],
        "GPU-1.77.gpu_process_util": [0.0, 85.0],
    }
    cluster.state.machines.append(
        machine_usage_pb2.MachineUsage(
            node="desk",
            start_time=1_800_000_000.0,
            seconds=[7200.0, 5.0],
            series=[
                machine_usage_pb2.MachineUsage.Series(name=name, values=values)
                for name, values in series.items()
            ],
        )
    )
    (usage,) = json.loads(resolute("trial", "machine", str(trial.number), "--json").out)
    assert (usage["node"], usage["container_rank"], usage["seconds"]) == ("desk", 0, [7200.0, 5.0])
    assert usage["series"]["GPU-2.gpu_util"] == [70.0, None]
    lines = resolute("trial", "machine", str(trial.number)).out.splitlines()
    cells = {line.split()[2]: line.split()[3:] for line in lines[1:] if line.split()[1:2] == ["desk"]}
    assert cells["cpu"] == ["30.0%", "30.0%", "10.0%"]
    assert cells["net_sent"] == ["1.0", "KiB/s", "1.0", "KiB/s", "2.0", "KiB/s"]
    assert cells["GPU-1.gpu_temperature"] == ["71.0", "°C", "71.0", "°C", "60.0", "°C"]
    assert cells["GPU-1.gpu_nvlink_sent"][:2] == ["4.0", "KiB/s"]
    assert cells["GPU-1.77.gpu_process_memory"][:2] == ["2.0", "KiB"]
    assert cells["GPU-1.77.gpu_process_util"][0] == "85.0%"
    (node,) = json.loads(resolute("top", "--json").out)["nodes"]
    assert node == {
        "node": "desk",
        "trials": [trial.number],
        "cpu": 30.0,
        "memory": 50.0,
        "gpu": 90.0,
        "celsius": 71.0,
    }
    shown = resolute("top", "--once").out.splitlines()
    assert shown[-1].split() == ["desk", "30", "50", "90", "71", str(trial.number)]


def test_a_rate_is_of_the_latest_reports() -> None:
    slow = [SeriesPoint(step, 0.0, 10.0 * step) for step in range(10)]
    fast = [SeriesPoint(9 + step, 0.0, 90.0 + step / 2) for step in range(1, 11)]
    assert rate([*slow, *fast]) == pytest.approx(2.0)
    assert rate(slow[:1]) is None
    assert rate([]) is None


def test_open_prints_the_http_address_of_the_local_cluster(
    cluster: ScriptedCluster, resolute: CommandLine, home: Path
) -> None:
    assert "serves no HTTP, so there is no page to open" in resolute("open").err
    assert "is not known; give it with -m" in resolute("-m", "elsewhere:1", "open").err
    endpoint = json.loads((home / "endpoint.json").read_text())
    (home / "endpoint.json").write_text(json.dumps({**endpoint, "http_url": "http://127.0.0.1:9"}))
    assert resolute("open").out == "http://127.0.0.1:9\n"
    (home / "endpoint.json").write_text(json.dumps({**endpoint, "http_url": "http://h:9", "page": False}))
    for command in (["open"], ["user", "sign-in-link"]):
        refused = resolute(*command)
        assert refused.code == 1
        assert refused.out == ""
        assert "no page to open: its files were left out" in refused.err
        assert "`make page`" in refused.err
    assert resolute("-m", "elsewhere:1", "open").code == 1


class _Discovery(BaseHTTPRequestHandler):
    """Says where gRPC is, as gateways do."""

    grpc_address: ClassVar[str]

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"grpc_address": self.grpc_address}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        pass


def test_open_prints_the_url_that_names_the_cluster(
    cluster: ScriptedCluster, resolute: CommandLine, home: Path
) -> None:
    _Discovery.grpc_address = cluster.address
    (home / "endpoint.json").unlink()
    with HTTPServer(("127.0.0.1", 0), _Discovery) as server:
        serving = threading.Thread(target=server.serve_forever, name="discovery")
        serving.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            assert resolute("-m", f"{url}/", "open").out == f"{url}\n"
        finally:
            server.shutdown()
            serving.join()


def test_trial_list_without_an_experiment_takes_the_newest(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    assert "there is no experiment yet" in resolute("trial", "list").err
    for _ in range(2):
        cluster.state.add_trial(cluster.state.add_experiment())
    outcome = resolute("trial", "list", "--csv")
    assert "trials of experiment 2, the newest" in outcome.err
    assert [line.partition(",")[0] for line in outcome.out.splitlines()[1:]] == ["2"]


def test_settings_count_where_the_command_line_and_the_environment_say_nothing(
    cluster: ScriptedCluster, resolute: CommandLine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolute("config", "get", "output").code == 1
    assert resolute("config", "set", "output", "json").code == 0
    assert resolute("config", "get", "output").out == "json\n"
    cluster.state.add_experiment()
    assert json.loads(resolute("experiment", "list").out)[0]["id"] == 1
    assert resolute("experiment", "list", "--csv").out.startswith("id,")
    assert "output" in resolute("config", "set", "output", "xml").err
    assert resolute("config", "set", "output", "").out == "output is no longer set\n"

    (home / "endpoint.json").rename(home / "other.json")
    assert resolute("config", "set", "server", cluster.address).code == 0
    monkeypatch.setenv("RESOLUTE_TOKEN", cluster.token())
    assert resolute("experiment", "list", "--csv").code == 0
    with Client() as client:
        assert [experiment.id for experiment in client.list_experiments()] == [1]
    monkeypatch.setenv("RESOLUTE_MASTER", "nowhere.invalid:1")
    assert "nowhere.invalid" in resolute("experiment", "list").err
    (home / "settings.json").write_text('{"output": "xml"}')
    assert "correct it" in resolute("experiment", "list").err


def test_every_reason_of_an_error_is_explained_and_the_message_names_it(
    cluster: ScriptedCluster, resolute: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(ERROR_REASONS) == set(errors.BY_REASON)
    assert resolute("help", "errors", "not_found").out.startswith("NOT_FOUND\n\nThe object does not exist")
    assert resolute("help", "errors", "NOPE").code == 2
    assert resolute("help", "experiment", "list").out.startswith("Usage: resolute experiment list")
    cluster.state.faults["GetExperiment"] += [NotFoundError("experiment 7 does not exist")] * 2
    assert resolute("experiment", "describe", "7").err == "error: experiment 7 does not exist\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said = resolute("experiment", "describe", "7").err
    assert said == "error: experiment 7 does not exist\n  more: resolute help errors NOT_FOUND\n"


def test_without_a_directory_that_of_the_config_is_submitted(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    (code / "downloads").mkdir()
    (code / "downloads/weights.bin").write_text("fetched")
    outcome = resolute("e", "create", str(code / "const.yaml"))
    assert f"no DIR is given: submitting {code}, where the config is" in outcome.err
    (archive,) = cluster.state.archives.values()
    assert names(archive) == ["const.yaml", "train.py"]
    (code / ".detignore").write_text("!/downloads/\n")
    resolute("e", "create", str(code / "const.yaml"))
    assert "downloads/weights.bin" in names(list(cluster.state.archives.values())[-1])


def test_the_largest_files_of_a_large_submission_are_named(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    (code / "data.bin").write_bytes(bytes(11 << 20))
    said = resolute("e", "create", str(code / "const.yaml"), str(code)).err
    assert said.startswith("11.0 MiB of code are submitted (largest: data.bin (11.0 MiB), ")
