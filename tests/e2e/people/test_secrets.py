"""Secrets of a whole cluster: a run gets what its config names, and nobody else reads it anywhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from support.clusters.embedded import embedded

TOKEN = "hf_s3cr3t/token+of=a hub"
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\nBAQEFAASCBKcwggSjAgEA\n-----END KEY-----"
SCRIPT = """
import base64, json, os, pathlib, subprocess, sys, urllib.parse
import determined as det

token = os.environ["HUB_TOKEN"]
files = pathlib.Path(os.environ["RESOLUTE_SECRETS_DIR"])
assert (files / "hub").read_text() == token, token
assert (files / "key").stat().st_mode & 0o777 == 0o600
assert "KEY" not in os.environ
assert os.environ["FROM_HOOK"] == str(len(token))
for pid in pathlib.Path("/proc").glob("[0-9]*"):
    # What may be seen of all processes here, the supervisor among them.
    try:
        assert token.encode() not in (pid / "cmdline").read_bytes(), pid
        if b"resolute_launch.supervisor" in (pid / "cmdline").read_bytes():
            assert token.encode() not in (pid / "environ").read_bytes(), pid
    except OSError:
        continue
print("printed", token)
print((files / "key").read_text())
print("header", base64.b64encode(f"user:{token}".encode()).decode())
print("body", json.dumps({"token": token}))
print("url", "https://user:" + urllib.parse.quote(token, safe="") + "@hub")
subprocess.run([sys.executable, "-c", "import os; print(os.environ)"], check=True)
with det.core.init() as core:
    core.train.report_validation_metrics(steps_completed=1, metrics={"loss": 1.0})
raise RuntimeError(f"the hub refused {token}")
"""
CONFIG = {
    "name": "given secrets",
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss"},
    "environment": {"secrets": ["key", "HUB_TOKEN=hub"]},
    "max_restarts": 0,
}


def test_a_run_gets_its_secrets_and_they_are_written_nowhere(tmp_path: Path) -> None:
    with embedded(tmp_path / "home") as own:
        own.run("resolute", "secret", "set", "hub", typed=f"{TOKEN}\n")
        own.run("resolute", "secret", "set", "key", "-w", "Uncategorized", typed=PEM)
        assert "hub" in own.run("resolute", "secret", "list").stdout
        project = tmp_path / "project"
        project.mkdir()
        (project / "train.py").write_text(SCRIPT)
        (project / "startup-hook.sh").write_text('export FROM_HOOK="${#HUB_TOKEN}"\n')
        (project / "config.yaml").write_text(json.dumps(CONFIG))
        own.run("resolute", "experiment", "create", "config.yaml", ".", "--follow", cwd=project, check=False)
        log = own.run("resolute", "logs", "1").stdout
        lines = [line for line in log.splitlines() if "printed ***" in line]
        assert lines, log
        assert "RuntimeError: the hub refused ***" in log
        assert "url https://user:***@hub" in log
        assert 'body {"token": "***"}' in log
        shown = own.run("resolute", "experiment", "config", "1").stdout
        assert "HUB_TOKEN=hub" in shown
        described = own.run("resolute", "trial", "describe", "1").stdout
        for text in (log, shown, described):
            assert not leaked(text.encode()), text
        for path in (tmp_path / "home").rglob("*"):
            if path.is_file() and path.stat().st_size < 50_000_000:
                assert not leaked(path.read_bytes()), path
        (project / "config.yaml").write_text(json.dumps(CONFIG).replace("=hub", "=absent"))
        refused = own.run("resolute", "experiment", "create", "config.yaml", ".", cwd=project, check=False)
        assert "`resolute secret set absent` sets it" in refused.stderr
        absent = ("--config", "environment.secrets=[absent]")
        refused = own.run("resolute", "experiment", "continue", "1", *absent, "--yes", check=False)
        assert "`resolute secret set absent` sets it" in refused.stderr
        own.run("resolute", "secret", "delete", "hub")
        assert "hub" not in own.run("resolute", "secret", "list").stdout


def leaked(text: bytes) -> list[bytes]:
    """The secrets, or parts of them, that a text holds."""
    header = base64.b64encode(f"user:{TOKEN}".encode())
    return [part for part in (TOKEN.encode(), *PEM.encode().splitlines(), header[8:-4]) if part in text]
