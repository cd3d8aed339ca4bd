"""A cluster that other machines reach by TLS: `resolute up --tls-self-signed`, and who trusts it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.certificates import Authority
from support.clusters.embedded import EmbeddedCluster
from support.services.gateway import need_http

CONFIG = """
name: protected
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
"""
SCRIPT = """
import determined as det

with det.core.init() as core:
    for operation in core.searcher.operations():
        core.train.report_validation_metrics(1, {"loss": 0.5})
        operation.report_completed(0.5)
"""
REMOTE_SCRIPT = """
from resolute.client import Client

with Client() as cluster:
    print([one.name for one in cluster.list_experiments()])
"""

UNMANAGED_SCRIPT = """
from resolute import core_v2

core_v2.init(config=core_v2.Config(name="laptop"))
core_v2.train.report_validation_metrics(steps_completed=1, metrics={"loss": 0.5})
with core_v2.checkpoint.store_path({"steps_completed": 1}) as (path, _):
    (path / "step").write_text("1")
core_v2.close()
"""


@pytest.mark.timeout(300)
def test_a_remote_user_confirms_the_certificate_once_and_works_by_one_url(tmp_path: Path) -> None:
    need_http()
    served = EmbeddedCluster(tmp_path / "h", environment={"RESOLUTE_NO_HTTP": ""})
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG)
    refused = served.run("resolute", "up", "--detach", "--host", "0.0.0.0", check=False)
    assert "there is no TLS: add --tls-self-signed" in refused.stderr
    said = served.run("resolute", "up", "--detach", "--slots", "1", "--tls-self-signed", timeout=90).stdout
    try:
        (fingerprint,) = re.findall(r"^Fingerprint: (\S+)$", said, re.MULTILINE)
        (remote,) = re.findall(r"^Other machines: (\S+), gRPC by TLS$", said, re.MULTILINE)
        url = json.loads(served.run("resolute", "status", "--json").stdout)["http_url"]
        assert url.startswith("https://127.0.0.1:")
        served.run("resolute", "user", "create", "grace")
        piped(served, "user", "change-password", "grace")
        far = EmbeddedCluster(tmp_path / "far", environment={"RESOLUTE_MASTER": url})
        unknown = far.run("resolute", "experiment", "list", check=False)
        assert "its certificate is not trusted" in unknown.stderr
        login = ("user", "login", "grace", "--fingerprint")
        assert "somebody else may answer" in piped(far, *login, "AA:BB", check=False)
        asked = piped(far, "user", "login", "grace", check=False)
        assert "one cannot ask whether that is the cluster's" in asked
        assert f"add --fingerprint {fingerprint}" in asked
        assert "as grace" in piped(far, *login, fingerprint)
        far.run("resolute", "e", "create", str(tmp_path / "config.yaml"), str(code))
        far.run("resolute", "e", "wait", "1", timeout=120)  # fails unless it completes
        # The port of gRPC has the same certificate; the token of the login is for the cluster's address.
        assert "protected" in far.run("resolute", "-m", f"https://{remote}", "experiment", "list").stdout
        # As `det` is told of a certificate.
        authority = served.home / "data" / "tls" / "certificate.pem"
        other = {
            "DET_MASTER": url,
            "DET_MASTER_CERT_FILE": str(authority),
            "DET_MASTER_CERT_NAME": "localhost",
            "RESOLUTE_TOKEN": (served.home / "token").read_text(),
        }
        by_file = EmbeddedCluster(tmp_path / "other", environment=other)
        (tmp_path / "remote.py").write_text(REMOTE_SCRIPT)
        assert "protected" in by_file.run("python", str(tmp_path / "remote.py")).stdout
        assert (served.home / "data" / "tls" / "key.pem").stat().st_mode & 0o077 == 0
    finally:
        served.down()


@pytest.mark.timeout(300)
def test_a_run_outside_of_the_cluster_uses_tls_also_by_a_certificate_that_everybody_trusts(
    tmp_path: Path,
) -> None:
    authority = Authority.create(tmp_path)
    files = authority.issue(tmp_path)
    trusts = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(authority.file), "SSL_CERT_FILE": str(authority.file)}
    served = EmbeddedCluster(tmp_path / "h", environment=trusts)
    certificate = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    said = served.run("resolute", "up", "--detach", "--slots", "1", *certificate, timeout=90).stdout
    try:
        (remote,) = re.findall(r"^Other machines: (\S+), gRPC by TLS$", said, re.MULTILINE)
        variables = {
            **trusts,
            "DET_MASTER": f"https://{remote}",
            "RESOLUTE_TOKEN": (served.home / "token").read_text(),
            "RESOLUTE_OUTAGE_TIMEOUT_SECONDS": "20",
            "RESOLUTE_OFFLINE_DIR": str(tmp_path / "runs"),
        }
        laptop = EmbeddedCluster(tmp_path / "laptop", environment=variables)
        (tmp_path / "laptop.py").write_text(UNMANAGED_SCRIPT)
        laptop.run("python", str(tmp_path / "laptop.py"), timeout=120)
        (trial,) = served.json("experiment", "list-trials", "1")
        assert trial["state"] == "COMPLETED"
    finally:
        served.down()


def piped(cluster: EmbeddedCluster, *arguments: str, check: bool = True) -> str:
    """Runs a command that reads a password; gives all that it said."""
    done = subprocess.run(
        [Path(sys.executable).parent / "resolute", *arguments, "--password-stdin"],
        env=cluster.variables(),
        input="navy cobol\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode == 0) is check, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
