"""A startup hook on a real cluster: what docs/hooks.md says of it."""

from __future__ import annotations

import re
from pathlib import Path

from support.clusters.embedded import EmbeddedCluster
from support.suite.site_packages import changed_files, installed_files
from wire.hooks.installs import make_wheel

CONFIG = """
name: hooked
entrypoint: python3 train.py
environment: {warm_start: true}
searcher: {name: grid, metric: loss, max_length: {batches: 1}}
hyperparameters: {seed: {type: categorical, vals: [1, 2]}}
"""
SCRIPT = """
import resolute as det
import tabby

with det.core.init() as core:
    print("tabby", tabby.VERSION, tabby.__file__)
    for op in core.searcher.operations():
        core.train.report_validation_metrics(op.length, {"loss": 1.0})
        op.report_completed(1.0)
"""


def test_trials_of_a_search_have_what_their_hook_installs_and_the_cluster_has_not(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    before = installed_files()
    wheels = tmp_path / "wheels"
    make_wheel(wheels, "tabby", "3.0")
    code = tmp_path / "code"
    code.mkdir()
    (code / "config.yaml").write_text(CONFIG)
    (code / "train.py").write_text(SCRIPT)
    hook = f"python3 -m pip install --no-index --find-links {wheels} tabby==3.0\r\n"
    (code / "startup-hook.sh").write_bytes(hook.encode("utf-8-sig"))
    made = cluster.det("e", "create", "config.yaml", ".", cwd=code)
    number = re.search(r"experiment (\d+)", made.stdout + made.stderr)
    assert number is not None
    cluster.det("e", "wait", number[1], timeout=180)
    trials = [entry["id"] for entry in cluster.json("e", "list-trials", number[1])]
    text = "".join(cluster.det("trial", "logs", str(trial)).stdout for trial in trials)
    assert text.count("Successfully installed tabby-3.0") == 1
    assert text.count("found from earlier runs of the experiment: tabby 3.0") == 1
    assert len(re.findall(r"tabby 3\.0 /\S+/overlay/lib/", text)) == 1
    assert len(re.findall(r"tabby 3\.0 /\S+/overlays/\w+/lib/", text)) == 1
    assert text.count("startup-hook.sh is read without its byte order mark and its carriage returns") == 2
    # Hooks and warm starts do not go together, which the log says once.
    assert text.count("this experiment's runs start cold: its code has a startup-hook.sh") == 1
    assert changed_files(before, installed_files()) == []
