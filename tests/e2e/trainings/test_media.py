"""Images, tables and so on, from a script on a cluster to Python and the command line, and away again."""

from __future__ import annotations

import json
import struct
import zlib
from functools import partial
from pathlib import Path

from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

SCRIPT = """
import numpy as np
from resolute import core

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'

with core.init() as context:
    train = context.train
    for operation in context.searcher.operations():
        for step in (10, 20):
            grid = np.full((2, 40, 50, 3), step / 20)
            train.log_images("../samples", grid, steps_completed=step, captions=["a"])
            train.log_image("noise", np.random.default_rng(0).random((60, 60, 3)), steps_completed=step)
            train.log_histogram("weights", np.arange(step), steps_completed=step, bins=4)
            train.log_text("said", f"<b>{step}</b>", steps_completed=step)
        train.log_table("errors", [{"label": 3, "guess": 8}], steps_completed=20)
        train.log_audio("beep", np.sin(np.arange(800)), sample_rate=8000, steps_completed=20)
        train.log_image("attack", SVG, steps_completed=20)
        train.log_image("lost", "nowhere.png", steps_completed=20)
        operation.report_completed(0.5)
"""

ENDLESS = """
import pathlib
import threading
import numpy as np
import resolute
from resolute import core

folder = pathlib.Path(resolute.get_cluster_info().trial.hparams["folder"])
pace = threading.Event()
with core.init() as context:
    for operation in context.searcher.operations():
        step = 0
        while not (folder / "end").exists():
            noise = np.random.default_rng(step).random((60, 60, 3))
            context.train.log_image("noise", noise, steps_completed=step)
            context.train.log_text("said", str(step), steps_completed=step)
            step += 1
            pace.wait(0.05)
        (folder / "logged").write_text(str(step))
        operation.report_completed(0.5)
"""


def test_a_script_logs_media_and_people_get_them(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    config = {
        "name": "media",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 20}},
        "max_restarts": 0,
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    created = cluster.run("resolute", "experiment", "create", "config.yaml", ".", "--follow", cwd=tmp_path)
    assert "image 'attack' was not logged: it is in none of the formats" in created.stdout
    assert "1 more left out of the reports: images that cannot be logged" in created.stdout
    with cluster.client() as client:
        experiment = next(each for each in client.list_experiments() if each.name == "media")
        (trial,) = experiment.list_trials()
        media = trial.media()
        assert [(one.kind.value, one.name, one.steps_completed) for one in media] == [
            ("image", "../samples", 10),
            ("image", "../samples", 10),
            ("image", "noise", 10),
            ("histogram", "weights", 10),
            ("text", "said", 10),
            ("image", "../samples", 20),
            ("image", "../samples", 20),
            ("image", "noise", 20),
            ("histogram", "weights", 20),
            ("text", "said", 20),
            ("table", "errors", 20),
            ("audio", "beep", 20),
        ]
        assert [one.caption for one in media[:2]] == ["a", ""]
        assert media[0].run == 1
        assert _size_of_png(media[0].read()) == (50, 40)
        assert media[2].size > 4096
        assert _size_of_png(media[2].read()) == (60, 60)
        assert trial.media("weights", kind="histogram")[1].json()["counts"] == [5, 5, 5, 5]
        assert trial.media("said")[0].read() == b"<b>10</b>"
        assert trial.media(kind="table")[0].json() == {"columns": ["label", "guess"], "rows": [[3, 8]]}
        assert trial.media(kind="audio")[0].read()[:4] == b"RIFF"

        number = str(trial.id)
        shown = cluster.run("resolute", "trial", "media", number, "--kind", "image").stdout
        assert shown.count("image/png") == 6
        records = cluster.json("trial", "media", number, "--name", "noise")
        assert [record["size"] for record in records] == [media[2].size] * 2
        fetched = cluster.run("resolute", "trial", "media", number, "--output-dir", "out", cwd=tmp_path)
        paths = [tmp_path / line for line in fetched.stdout.splitlines()]
        assert [path.resolve().is_relative_to(tmp_path / "out") for path in paths] == [True] * len(media)
        assert [path.read_bytes() for path in paths] == [one.read() for one in media]

        stored = list((cluster.home / "checkpoints").glob("*/media/*/*"))
        # The noise of both steps is the same, and is there once.
        assert [path.stat().st_size for path in stored] == [media[2].size]
        cluster.run("resolute", "experiment", "delete", str(experiment.id), "--yes")
        wait_until(lambda: not list((cluster.home / "checkpoints").glob("*/media/*/*")), what="the deletion")


def test_kills_of_the_control_plane_lose_no_media_and_double_none(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    config = {
        "name": "media",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 20}},
        "hyperparameters": {"folder": str(tmp_path)},
        "max_restarts": 0,
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    with embedded(tmp_path / "home", slots=1) as cluster:
        cluster.run("resolute", "experiment", "create", "config.yaml", ".", cwd=tmp_path)
        known = 0
        for _ in range(3):
            wait_until(partial(has_more, cluster, known + 20), what="more media")
            known = len(logged(cluster))
            cluster.kill()
            cluster.up()
        (tmp_path / "end").touch()
        cluster.run("resolute", "experiment", "wait", "1", timeout=240)
        steps = range(int((tmp_path / "logged").read_text()))
        assert logged(cluster) == [(step, name) for step in steps for name in ("noise", "said")]
        stored = {path.name for path in (cluster.home / "checkpoints").glob("*/media/*/*")}
        contents = {one["digest"] for one in cluster.json("trial", "media", "1", "--name", "noise")}
        assert len(contents) == len(steps)
        # A kill may leave what it was about to write, under another name; it goes with the experiment.
        assert {name for name in stored if "." not in name} == contents
        cluster.run("resolute", "experiment", "delete", "1", "--yes")
        wait_until(lambda: not list((cluster.home / "checkpoints").glob("*/media/*/*")), what="the deletion")


def has_more(cluster: EmbeddedCluster, than: int) -> bool:
    return len(logged(cluster)) > than


def logged(cluster: EmbeddedCluster) -> list[tuple[int, str]]:
    """Steps and names of what the first trial has logged."""
    if not cluster.json("trial", "list", "1"):
        return []
    return [(one["steps_completed"], one["name"]) for one in cluster.json("trial", "media", "1")]


def _size_of_png(content: bytes) -> tuple[int, int]:
    """Checks a PNG and returns its width and height."""
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    position, pixels, size = 8, b"", (0, 0)
    while position < len(content):
        (length,) = struct.unpack_from(">I", content, position)
        name = content[position + 4 : position + 8]
        data = content[position + 8 : position + 8 + length]
        assert struct.unpack_from(">I", content, position + 8 + length) == (zlib.crc32(name + data),)
        if name == b"IHDR":
            size = struct.unpack_from(">II", data)
        pixels += data if name == b"IDAT" else b""
        position += 12 + length
    assert len(zlib.decompress(pixels)) == size[1] * (1 + 3 * size[0])
    return size
