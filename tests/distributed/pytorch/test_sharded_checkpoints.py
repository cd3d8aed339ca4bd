"""Checkpoints of torch.distributed.checkpoint: two real ranks, each with a part of a tensor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.object_stores.s3 import REGION, s3_server

SCRIPT = Path(__file__).with_name("sharded_ranks.py")
NAMES = {".metadata", "metadata.json", "__0_0.distcp", "__1_0.distcp"}


def saved_by_two_ranks(storage: str | dict[str, str]) -> str:
    """Runs the script and returns the checkpoint that it made and took up."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
            *(str(SCRIPT), json.dumps(storage)),
        ],
        env={**os.environ, "OMP_NUM_THREADS": "1", "AWS_REGION": REGION},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_two_ranks_save_their_shards_and_take_them_up_in_other_layouts(tmp_path: Path) -> None:
    checkpoint_id = saved_by_two_ranks(str(tmp_path / "store"))
    names = {path.name for path in (tmp_path / "store" / checkpoint_id).iterdir()}
    assert names >= NAMES


def test_shards_go_to_a_bucket_and_come_from_there(tmp_path: Path) -> None:
    with s3_server(tmp_path / "s3") as server:
        bucket = server.new_bucket()
        storage = {
            "type": "s3",
            "bucket": bucket,
            "endpoint_url": server.endpoint_url,
            "access_key": server.access_key,
            "secret_key": server.secret_key,
        }
        checkpoint_id = saved_by_two_ranks(storage)
        found = server.client().list_objects(bucket, prefix=f"{checkpoint_id}/")
        assert {(item.object_name or "").partition("/")[2] for item in found} >= NAMES
