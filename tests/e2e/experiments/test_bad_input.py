"""What a person gets wrong, and what `det` says about it: what is wrong, where, and what to do."""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster

from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.api.experiments.v1 import experiments_service_pb2_grpc
from resolute.client.connection.home import Home
from resolute.contracts.clock import SystemClock
from resolute.errors import DataLossError, InvalidArgumentError, QuotaError, UnauthenticatedError
from resolute.rpc.channel import open_channel
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, User

GOOD = """
name: good
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print('never runs')\n")
    (tmp_path / "good.yaml").write_text(GOOD)
    return tmp_path


def refused(cluster: EmbeddedCluster, *arguments: str, cwd: Path, **variables: str) -> str:
    """Runs a command that must fail and returns what it said."""
    other = EmbeddedCluster(cluster.home, environment={**cluster.environment, **variables})
    result = other.det(*arguments, cwd=cwd, check=False)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("name: [unclosed\n", "line 2"),
        (GOOD + "serchr: {}\n", "serchr: unknown field; did you mean 'searcher'?"),
        ("name: x\nsearcher: {name: single, metric: loss, max_length: 1}\n", "entrypoint: missing"),
        ("entrypoint: x\nsearcher: {name: single, max_length: 1}\n", "searcher.metric: missing"),
        (
            GOOD + "resources: {slots_per_trial: -1}\n",
            "resources.slots_per_trial: found -1; expected 0 or more",
        ),
        (
            GOOD + "resources: {slots_per_trial: 99}\n",
            "resources.slots_per_trial: found 99; expected at most 2",
        ),
        (
            GOOD.replace("name: single", "name: single, source_trial_id: 999"),
            "searcher.source_trial_id: found 999; there is no such trial",
        ),
        (
            "entrypoint: x\nsearcher: {name: adaptive, metric: loss}\n",
            "removed",
        ),
    ],
)
def test_wrong_config_is_refused_with_its_faults(
    cluster: EmbeddedCluster, project: Path, config: str, said: str
) -> None:
    (project / "bad.yaml").write_text(config)
    assert said in refused(cluster, "e", "create", "bad.yaml", "code", cwd=project)


def test_all_faults_of_a_config_are_said_at_once(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "bad.yaml").write_text("nme: x\nsearcher: {name: random, max_trials: 0}\nmax_restarts: -3\n")
    said = refused(cluster, "e", "create", "bad.yaml", "code", cwd=project)
    for fault in ("nme: unknown field", "searcher.max_trials", "max_restarts", "entrypoint: missing"):
        assert fault in said


def test_missing_config_or_directory_is_named(cluster: EmbeddedCluster, project: Path) -> None:
    assert "nowhere.yaml" in refused(cluster, "e", "create", "nowhere.yaml", "code", cwd=project)
    said = refused(cluster, "e", "create", "good.yaml", "nowhere", cwd=project)
    assert "nowhere" in said
    assert "No such file or directory" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything, so nothing is unreadable")
def test_unreadable_file_is_named(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "code/secret").touch(mode=0o000)
    assert "secret" in refused(cluster, "e", "create", "good.yaml", "code", cwd=project)


def test_model_definition_over_the_limit_is_refused_before_it_is_sent(
    cluster: EmbeddedCluster, project: Path
) -> None:
    (project / "code/large").write_bytes(b"x" * 5000)
    said = refused(
        cluster,
        "e",
        "create",
        "good.yaml",
        "code",
        cwd=project,
        RESOLUTE_MODEL_DEFINITION_LIMIT="4000",
    )
    assert "exceeds the maximum allowed size" in said


def test_link_out_of_the_directory_is_refused(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "code/link").symlink_to("/etc/hostname")
    said = refused(cluster, "e", "create", "good.yaml", "code", cwd=project)
    assert "link" in said


def test_unknown_experiment_is_named(cluster: EmbeddedCluster, project: Path) -> None:
    assert "experiment 4711 does not exist" in refused(cluster, "e", "pause", "4711", cwd=project)


def test_service_that_is_down_is_named_with_the_remedy(cluster: EmbeddedCluster, project: Path) -> None:
    said = refused(cluster, "-m", "127.0.0.1:9", "e", "list", cwd=project, RESOLUTE_TOKEN="x")
    assert "cannot reach 127.0.0.1:9" in said


def test_no_cluster_at_all_is_said_with_the_remedy(project: Path, tmp_path: Path) -> None:
    nowhere = EmbeddedCluster(tmp_path / "empty-home")
    said = refused(nowhere, "e", "list", cwd=project)
    assert "resolute up" in said


@pytest.mark.parametrize("token", ["nonsense", "a.b.c"])
def test_wrong_token_is_refused(cluster: EmbeddedCluster, project: Path, token: str) -> None:
    said = refused(cluster, "-m", master(cluster), "e", "list", cwd=project, **as_stranger(project, token))
    assert "token is not valid" in said


def test_token_of_another_cluster_is_refused(cluster: EmbeddedCluster, project: Path) -> None:
    signer = TokenSigner(load_or_create_key(project / "key.pem"), cluster_id="another", clock=SystemClock())
    foreign = signer.user(User("eve", Role.ADMIN), ttl=60)
    with open_channel(address(cluster), token=lambda: foreign) as channel:
        stub = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
        with pytest.raises(UnauthenticatedError, match="not issued by this cluster"):
            stub.ListExperiments(pb2.ListExperimentsRequest())


@pytest.mark.parametrize("name", ["../escape.py", "/etc/escape", "a/../../escape"])
def test_archive_that_climbs_out_is_refused_by_the_server(cluster: EmbeddedCluster, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="escape"):
        submit(cluster, archive_with(name))


def test_archive_that_is_none_is_refused_by_the_server(cluster: EmbeddedCluster) -> None:
    with pytest.raises(DataLossError, match="not a whole gzipped tar archive"):
        submit(cluster, b"this is no archive")


def test_endless_archive_is_cut_off_by_the_server(cluster: EmbeddedCluster) -> None:
    piece = b"\0" * (1 << 20)
    with pytest.raises(QuotaError, match="exceeds the maximum allowed size"):
        submit(cluster, *[piece] * 520)


def test_what_is_refused_of_the_reports_shows_in_the_log(cluster: EmbeddedCluster, project: Path) -> None:
    script = """
import determined as det

with det.core.init() as core:
    core.train.report_training_metrics(1, {"loss": 1.0})
    core.train.report_training_metrics(1, {"loss": 2.0})
    core.train.report_training_metrics(1, {"loss": 3.0})
    core.train.report_validation_metrics(1, {"loss": 0.500000001})
    core.train.report_validation_metrics(1, {"loss": 0.500000002})
    core.train.report_validation_metrics(1, {"loss": 0.75})
    core.train.flush()
    core.train.report_training_metrics(2, {"loss": 1.0})
    print("trained to the end")
"""
    (project / "code/train.py").write_text(script)
    created = cluster.det("e", "create", "good.yaml", "code", cwd=project).stdout.split()[-1]
    cluster.det("e", "wait", created, timeout=90)
    said = cluster.det("e", "logs", created).stdout
    assert said.count("WARNING: left out of the reports: group 'training' at step 1: metric 'loss'") == 1
    assert "3 more left out of the reports: report each metric once a step" in said
    assert "trained to the end" in said
    (trial,) = cluster.json("e", "list-trials", created)
    described = cluster.det("t", "describe", str(trial["id"])).stdout
    assert "report each metric once a step, or give the second another name (4)" in described
    assert trial["best_validation"]["value"] == pytest.approx(0.500000001, abs=1e-10)


def address(cluster: EmbeddedCluster) -> str:
    found = Home(cluster.home).read_endpoint()
    assert found is not None
    return found.address


def master(cluster: EmbeddedCluster) -> str:
    """The cluster as commands name it."""
    return cluster.variables().get("RESOLUTE_MASTER") or address(cluster)


def as_stranger(folder: Path, token: str) -> dict[str, str]:
    """Variables of somebody who knows the address and has another home."""
    return {"RESOLUTE_HOME": str(folder / "elsewhere"), "RESOLUTE_TOKEN": token}


def archive_with(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = 3
        archive.addfile(member, io.BytesIO(b"bad"))
    return buffer.getvalue()


def submit(cluster: EmbeddedCluster, *chunks: bytes) -> None:
    token = (cluster.home / "token").read_text().strip()

    def requests() -> Iterator[pb2.CreateExperimentInChunksRequest]:
        header = pb2.CreateExperimentInChunksRequest.Header(
            request_id=str(uuid.uuid4()), spec=pb2.ExperimentSpec(config_yaml=GOOD)
        )
        yield pb2.CreateExperimentInChunksRequest(header=header)
        for chunk in chunks:
            yield pb2.CreateExperimentInChunksRequest(chunk=chunk)

    with open_channel(address(cluster), token=lambda: token) as channel:
        stub = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
        stub.CreateExperimentInChunks(requests(), timeout=60)


MISNAMED = """
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_validation_metrics(steps_completed=1, metrics={"acc": 0.5, "val_loss": 0.1})
        op.report_completed(0.5)
"""


def test_a_metric_that_no_trial_reports_is_warned_of(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "code/train.py").write_text(MISNAMED)
    warning = (
        "no trial has reported searcher.metric 'loss'; validations have: acc, val_loss; "
        "did you mean 'val_loss'?"
    )
    followed = refused_at_the_end(cluster, "e", "create", "good.yaml", "code", "-f", cwd=project)
    assert followed[-1] == f"warning: {warning}"
    number = followed[0].split()[-1]
    assert cluster.json("e", "describe", number)[0]["experiment"]["warning"] == warning
    assert warning in cluster.det("e", "describe", number).stdout
    listed = {row["id"]: row["warning"] for row in cluster.json("e", "list")}
    assert listed[int(number)] == warning
    assert refused_at_the_end(cluster, "e", "wait", number)[-1] == f"warning: {warning}"


def refused_at_the_end(cluster: EmbeddedCluster, *arguments: str, cwd: Path | None = None) -> list[str]:
    """What a command says that exits with 1."""
    ended = cluster.det(*arguments, cwd=cwd, check=False)
    assert ended.returncode == 1
    return ended.stdout.splitlines()
