"""A cluster that serves has loaded nothing that waits for its first use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

LATER = (
    "aiohttp",
    "alembic",
    "boto3",
    "botocore",
    "connectrpc",
    "kubernetes",
    "optuna",
    "pandas",
    "ray",
    "resolute_config.experiment",
    "resolute_config.sections.searcher",
    "resolute_gateway.http_gateway",
    "smtplib",
    "sqlalchemy.dialects.postgresql",
    "starlette",
    "torch",
    "urllib3",
    "uvicorn",
)
"""HTTP, object stores, other engines, mails, migrations of old homes, configs: starts do without them."""
PROGRAM = """
import asyncio, json, os, signal, sys
from resolute.client.connection.home import Home
from resolute_embedded.cluster import Options, serve
from resolute_embedded.home.state_directory import StateDirectory

def ready(address, slots, lines):
    modules = sorted(sys.modules)
    from resolute_config.sections import searcher
    built = [name for name, model in vars(searcher).items() if getattr(model, "__pydantic_complete__", False)]
    print(json.dumps({"modules": modules, "built": built}))
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)

state = StateDirectory(Home.from_environment(os.environ))
asyncio.run(serve(state, Options(slots=1), ready=ready))
"""


def test_what_waits_for_its_first_use_is_not_loaded_by_a_start(tmp_path: Path) -> None:
    environment = {**os.environ, "RESOLUTE_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert "resolute_experiments.service" in seen["modules"]
    assert sorted(set(LATER) & set(seen["modules"])) == []
    assert seen["built"] == [], "models of the config are built for the first config"
