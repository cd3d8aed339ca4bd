"""A whole cluster whose trials are containers of a real Podman, which reach it by TLS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from support.clusters.embedded import EmbeddedCluster
from support.daemons.containers import Podman
from support.engines.containers.image import IMAGE
from support.engines.containers.podman import podman_service
from support.ports import free_port
from support.waiting import wait_until

from resolute_engines.settings import FILE_NAME

SECONDS = 240.0
SETTINGS = """
resource_pools:
  - {{pool_name: boxes, engine: podman, slots: 2, image: "{image}"}}
  - {{pool_name: here, engine: local}}
engines:
  podman:
    type: container
    url: {url}
    services_address: {address}
    services_certificate: {certificate}
    checkpoint_directories: [{storage}]
"""
CONFIG = """
name: boxed
checkpoint_storage: {{type: shared_fs, host_path: {storage}}}
entrypoint: python3 train.py
resources: {{shm_size: 32 MiB}}
searcher: {{name: single, metric: loss, max_length: 1}}
max_restarts: 0
"""
NEIGHBOURS = """
import os, pathlib
import determined as det
from resolute.errors import ResoluteError

info = det.get_cluster_info()
told, storage = info.user_data, pathlib.Path(info.user_data["storage"])

def restored(core, uuid):
    with core.checkpoint.restore_path(uuid) as path:
        return (path / "state").read_text()

def attempt(name, work):
    try:
        print("REACHED" if work() else "refused", name, flush=True)
    except (OSError, ResoluteError) as failure:
        print("refused", name, type(failure).__name__, flush=True)

def elsewhere(place):
    with det.core.init(checkpoint_storage=str(place)) as other:
        with other.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state").write_text("planted")
    return True

with det.core.init() as core:
    if info.latest_checkpoint:
        print("latest:", restored(core, info.latest_checkpoint), flush=True)
    else:
        with core.checkpoint.store_path({"steps_completed": 0}) as (path, uuid):
            print("first:", uuid, flush=True)
    if other := told.get("other"):
        theirs = storage / other["directory"]
        own = theirs.parent / told["workspace_id"]
        attempt("what is beside", lambda: set(os.listdir(theirs.parent)) - {told["workspace_id"]})
        attempt("files of others", lambda: [p for p in storage.rglob("state") if not p.is_relative_to(own)])
        attempt("to read theirs", lambda: (theirs / other["ungranted"] / "state").read_text())
        attempt("to write there", lambda: (theirs / "planted").write_text("x"))
        attempt("to write above", lambda: (storage / "planted").write_text("x"))
        attempt("to read by the service", lambda: restored(core, other["ungranted"]))
        (own / "link").symlink_to(theirs)
        (own / "up").symlink_to("..")
        attempt("a link", lambda: os.listdir(own / "link"))
        attempt("a link up", lambda: set(os.listdir(own / "up")) - {told["workspace_id"]})
        for place in (theirs, own / "link", own / "up", own / "up" / other["directory"].split("/")[1]):
            attempt(f"to store in {place}", lambda: elsewhere(place))
    if source := told.get("source"):
        print("source:", restored(core, source), flush=True)
    for op in core.searcher.operations():
        core.train.report_validation_metrics(steps_completed=op.length, metrics={"loss": 0.5 / op.length})
        with core.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "state").write_text(told["text"] + str(op.length))
        op.report_completed(0.5 / op.length)
"""
SCRIPT = """
import os
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_validation_metrics(steps_completed=1, metrics={"loss": 0.25})
        with core.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state").write_text("one step")
        print("trained as", os.getuid(), "in", open("/proc/1/cmdline").read().split("\\0")[2], flush=True)
        op.report_completed(0.25)
"""


FAILS = """
import os, pathlib
pathlib.Path("out").mkdir()
pathlib.Path("out/batch.txt").write_text("17 17 17")
os.abort()
"""


@dataclass(frozen=True)
class _Serving:
    """A cluster whose pool is two slots of a Podman."""

    cluster: EmbeddedCluster
    podman: Podman
    storage: Path
    """The directory for its checkpoints."""
    up: Callable[[], object]
    """Starts it."""


@contextmanager
def _serving(folder: Path) -> Iterator[_Serving]:
    home, storage = folder / "home", folder / "storage"
    storage.mkdir()
    # The trial is another user in its container.
    storage.chmod(0o777)
    home.mkdir(mode=0o700)
    with podman_service(folder) as podman, podman.serving():
        port = free_port()
        told = SETTINGS.format(
            image=IMAGE,
            url=podman.url,
            address=f"{podman.host}:{port}",
            certificate=home / "data/tls/certificate.pem",
            storage=storage,
        )
        (home / FILE_NAME).write_text(told)
        cluster = EmbeddedCluster(home, environment={"RESOLUTE_CHECKPOINTS_ROOTS": str(storage)})
        remote = ("--host", podman.host, "--remote-port", str(port), "--tls-self-signed")
        up = partial(cluster.run, "resolute", "up", "--detach", "--no-http", *remote, timeout=SECONDS)
        up()
        try:
            yield _Serving(cluster, podman.podman, storage, up)
        finally:
            cluster.down()


def _submit(cluster: EmbeddedCluster, folder: Path, *, script: str, config: str) -> str:
    folder.mkdir()
    (folder / "train.py").write_text(script)
    (folder / "boxed.yaml").write_text(config)
    created = cluster.det("e", "create", "boxed.yaml", ".", cwd=folder)
    return created.stdout + created.stderr


def test_trial_runs_in_a_container_and_its_lines_metrics_checkpoint_and_end_arrive(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        cluster, podman, storage = served.cluster, served.podman, served.storage
        said = _submit(cluster, tmp_path / "project", script=SCRIPT, config=CONFIG.format(storage=storage))
        assert "shm_size" not in said
        cluster.det("e", "wait", "1", timeout=SECONDS)
        assert "trained as 10001 in" in cluster.det("t", "logs", "1").stdout
        (listed,) = cluster.json("e", "list-checkpoints", "1")
        uuid = listed["uuid"]
        mine = cluster.json("master", "info")["cluster_id"]
        assert (storage / f"workspaces-{mine}" / "1" / uuid / "state").read_text() == "one step"
        with cluster.client() as client:
            (best,) = client.get_experiment(1).list_checkpoints()
            assert best.uuid == uuid
            (report,) = client.get_trial(1).iter_metrics("validation")
            assert (report.steps_completed, report.metrics) == (1, {"loss": 0.25})
        (described,) = cluster.json("t", "describe", "1")
        assert [run["outcome"] for run in described["trial"]["runs"]] == ["COMPLETED"]
        _until_all_is_removed(cluster, podman)


def test_the_container_and_the_files_of_a_failed_run_stay_and_its_slots_do_not(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        cluster, podman, storage = served.cluster, served.podman, served.storage
        held = CONFIG.format(storage=storage) + "on_failure: {hold: 3600}\n"
        assert "on_failure" not in _submit(cluster, tmp_path / "project", script=FAILS, config=held)
        cluster.det("e", "wait", "1", check=False, timeout=SECONDS)
        _until_held(cluster)
        (listed,) = cluster.json("t", "files", "1", "0/work/out")
        assert listed == {"path": "0/work/out/batch.txt", "size": 8}
        name = podman.run("ps", "--all", "--quiet", "--filter", "status=exited", "--filter", _label(cluster))
        assert len(name.split()) == 1
        # The same after the control plane was started again, while both slots train something else.
        cluster.kill()
        served.up()
        whole = CONFIG.format(storage=storage).replace("resources: {", "resources: {slots_per_trial: 2, ")
        _submit(cluster, tmp_path / "next", script="print('on both slots')", config=whole)
        cluster.det("e", "wait", "2", timeout=SECONDS)
        assert "on both slots" in cluster.det("t", "logs", "2").stdout
        _until_held(cluster)
        fetched = tmp_path / "fetched"
        cluster.det("t", "files", "1", "0/work/out", "-o", str(fetched))
        assert (fetched / "0/work/out/batch.txt").read_text() == "17 17 17"
        cluster.det("e", "delete", "1", "--yes")
        _until_all_is_removed(cluster, podman)


def test_a_trial_reaches_no_checkpoint_of_another_workspace_but_the_one_that_it_starts_from(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()

    def train(
        cluster: EmbeddedCluster, *, workspace: str, pool: str, source: str = "", **data: Any
    ) -> Trained:
        config = {
            **yaml.safe_load(CONFIG.format(storage=served.storage)),
            **({} if workspace == "Uncategorized" else {"workspace": workspace, "project": "models"}),
            "data": {
                "storage": str(served.storage),
                "source": source,
                "text": f"of {workspace} after ",
                **data,
            },
        }
        config["resources"]["resource_pool"] = pool
        config["checkpoint_storage"] |= {"save_trial_best": 0, "save_trial_latest": 1}
        if source:
            config["searcher"]["source_checkpoint_uuid"] = source
        (project / "config.yaml").write_text(yaml.safe_dump(config))
        printed = cluster.det("e", "create", "config.yaml", ".", cwd=project).stdout
        return trained(cluster, int(re.findall(r"\d+", printed)[0]))

    with _serving(tmp_path) as served:
        cluster, storage = served.cluster, served.storage
        (project / "train.py").write_text(NEIGHBOURS)
        mine = cluster.json("master", "info")["cluster_id"]
        workspaces = {}
        for name in ("a", "b"):
            workspaces[name] = str(cluster.json("workspace", "create", name)["id"])
            cluster.det("project", "create", name, "models")
        # As one from before workspaces had directories: it lies in the named directory itself.
        old = train(cluster, workspace="Uncategorized", pool="here")
        assert (storage / old.checkpoint / "state").is_file()
        # Of everybody else's it reads the one that its config starts from.
        ungranted = train(cluster, workspace="a", pool="boxes")
        granted = train(cluster, workspace="a", pool="boxes", source=old.checkpoint)
        assert "source: of Uncategorized after 1" in granted.lines
        of_a, of_b = (storage / f"workspaces-{mine}" / workspaces[name] for name in ("a", "b"))
        # Its policy keeps the latest checkpoint.
        first = of_a / ungranted.said("first: ")
        wait_until(lambda: not first.exists(), what="retention", seconds=SECONDS)
        before = sorted(path.relative_to(of_a) for path in of_a.rglob("*"))
        neighbour = train(
            cluster,
            workspace="b",
            pool="boxes",
            source=granted.checkpoint,
            workspace_id=workspaces["b"],
            other={"directory": f"workspaces-{mine}/{workspaces['a']}", "ungranted": ungranted.checkpoint},
        )
        said = [line for line in neighbour.lines if line.startswith(("REACHED", "refused"))]
        assert len(said) == 12, neighbour.lines
        assert [line for line in said if not line.startswith("refused ")] == []
        assert "source: of a after 1" in neighbour.lines
        assert sorted(path.relative_to(of_a) for path in of_a.rglob("*")) == before
        assert (of_b / neighbour.checkpoint / "state").read_text() == "of b after 1"
        # It goes on from what lies in its own directory.
        cluster.det("e", "continue", ungranted.number, "--config", "searcher.max_length=2", "--yes")
        more = trained(cluster, int(ungranted.number))
        assert "latest: of a after 1" in more.lines
        assert (of_a / more.checkpoint / "state").read_text() == "of a after 2"
        cluster.det("e", "delete", ungranted.number, "--yes")
        wait_until(
            lambda: [path.name for path in of_a.iterdir() if path.name != mine] == [granted.checkpoint],
            what="the files to go with their experiment",
            seconds=SECONDS,
        )
        cluster.det("checkpoint", "delete", "--yes", neighbour.checkpoint)
        wait_until(lambda: not (of_b / neighbour.checkpoint).exists(), what="the deletion", seconds=SECONDS)


@dataclass(frozen=True)
class Trained:
    """An experiment of one trial that has ended well."""

    number: str
    checkpoint: str
    lines: list[str]

    def said(self, start: str) -> str:
        """The rest of the only line with a beginning."""
        (found,) = (line for line in self.lines if line.startswith(start))
        return found.removeprefix(start)


def trained(cluster: EmbeddedCluster, number: int) -> Trained:
    """Waits for an experiment of one trial, and tells of its latest checkpoint and its lines."""
    cluster.det("e", "wait", str(number), timeout=SECONDS)
    with cluster.client() as client:
        (trial,) = client.get_experiment(number).list_trials()
        latest = max(trial.list_checkpoints(), key=lambda one: one.metadata["steps_completed"])
        lines = [line.removesuffix("\n") for line in trial.logs()]
    return Trained(str(number), latest.uuid, lines)


def _until_held(cluster: EmbeddedCluster) -> None:
    wait_until(
        lambda: not cluster.det("t", "files", "1", check=False).returncode, what="the hold", seconds=SECONDS
    )


def _until_all_is_removed(cluster: EmbeddedCluster, podman: Podman) -> None:
    label = _label(cluster)
    wait_until(lambda: not _names(podman, label), what="everything to be removed", seconds=SECONDS)


def _label(cluster: EmbeddedCluster) -> str:
    return f"label=resolute.cluster={cluster.json('master', 'info')['cluster_id']}"


def _names(podman: Podman, label: str) -> list[str]:
    """Containers and volumes of a cluster's runs."""
    has = ("--quiet", "--filter", label)
    return [*podman.run("ps", "--all", *has).split(), *podman.run("volume", "ls", *has).split()]
