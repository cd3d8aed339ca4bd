"""The npm package has what its users import, and nothing of the tests."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

from clients.programs import SCENARIOS
from support.pages.commands import ROOT

SOURCE = ROOT / "clients/typescript"


def test_the_packed_client_is_imported_by_a_project(tmp_path: Path) -> None:
    SCENARIOS["typescript"].need()
    packed = subprocess.run(
        ["npm", "pack", "--json", "--silent", "--ignore-scripts", "--pack-destination", str(tmp_path)],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    (listed,) = json.loads(packed.stdout)
    names = {one["path"] for one in listed["files"]}
    assert {"dist/src/index.js", "dist/src/index.d.ts", "dist/src/node.js", "README.md"} <= names
    assert not {name for name in names if "test" in name or "example" in name}
    modules = tmp_path / "project/node_modules"
    modules.mkdir(parents=True)
    with tarfile.open(tmp_path / listed["filename"]) as archive:
        archive.extractall(modules, filter="data")
    (modules / "package").rename(modules / "resolute-client")
    for dependency in (SOURCE / "node_modules").iterdir():
        (modules / dependency.name).symlink_to(dependency)
    script = (
        "import { connect, failureOf } from 'resolute-client';"
        "import { connectGrpc } from 'resolute-client/node';"
        "import { ExperimentState } from 'resolute-client/gen/resolute/api/experiments/v1/experiment_pb.js';"
        "const services = connect({ url: 'http://127.0.0.1:9' });"
        "await services.cluster.getCluster({}, { timeoutMs: 1 }).catch((it) => failureOf(it).code);"
        "console.log(typeof connectGrpc, ExperimentState.ACTIVE);"
    )
    said = subprocess.run(
        ["node", "--input-type=module", "--eval", script],
        cwd=tmp_path / "project",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert said.stdout.splitlines()[-1] == "function 1"


def test_the_browsers_part_needs_no_node() -> None:
    SCENARIOS["typescript"].need()
    bundle = (SOURCE / "dist/browser.js").read_text()
    assert "node:" not in bundle
