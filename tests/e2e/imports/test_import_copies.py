"""An import that copies the files of checkpoints, after which nothing of the old cluster is needed."""

from __future__ import annotations

import base64
import io
import json
import random
import shutil
import tarfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.object_stores.azure import AzureServer, azure_server
from support.object_stores.gcs import GcsServer, gcs_server
from support.object_stores.s3 import S3Server, own_s3_server
from support.old_cluster import content as made_up
from support.old_cluster.content import Content, checkpoint_id
from support.old_cluster.going_on import weights_after
from support.old_cluster.master import OldMaster, serving_old_master

from resolute.client.schema.records import DirectoryStorage


@dataclass(frozen=True, kw_only=True)
class Stored(Content):
    """Every other experiment keeps its checkpoints in a bucket, whose credentials its config has."""

    server: S3Server
    bucket: str

    def storage(self, number: int) -> dict[str, Any]:
        """Where the checkpoints of an experiment lie."""
        if number % 2:
            return {"type": "shared_fs", "host_path": str(self.directory), "storage_path": "det"}
        return {
            "type": "s3",
            "bucket": self.bucket,
            "prefix": "ck",
            "endpoint_url": self.server.endpoint_url,
            "access_key": self.server.access_key,
            "secret_key": self.server.secret_key,
        }

    def write_files(self) -> None:
        """Writes all checkpoints to the directory, and those of the bucket there too."""
        super().write_files()
        client = self.server.client()
        for experiment in range(2, self.experiments + 1, 2):
            for trial in self.trials_of(experiment):
                for checkpoint in self.checkpoints_of(trial):
                    files = self.files(trial, checkpoint["metadata"]["steps_completed"])
                    for path, content in files.items():
                        key = f"ck/{checkpoint['uuid']}/{path}"
                        client.put_object(self.bucket, key, io.BytesIO(content), len(content))


def large_code() -> str:
    """Code of 5 MiB, as the master gives it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("noise")
        info.size = 5 << 20
        archive.addfile(info, io.BytesIO(random.Random(1).randbytes(info.size)))
    return base64.b64encode(buffer.getvalue()).decode()


def imported(cluster: EmbeddedCluster, address: str) -> tuple[int, str, str]:
    password = cluster.home / "password"
    password.write_text("")
    command = ("resolute", "import", "determined", address, "--password-file", str(password))
    ended = cluster.run(*command, "--copy-checkpoints", check=False, timeout=300)
    return ended.returncode, ended.stdout, ended.stderr


def test_copies_are_whole_and_all_that_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = large_code()
    monkeypatch.setattr(made_up, "model_definition", lambda: code)
    old = tmp_path / "old"
    with (
        own_s3_server(tmp_path / "s3") as server,
        embedded(tmp_path / "h") as cluster,
        cluster.client() as client,
    ):
        content = Stored(experiments=2, directory=old, server=server, bucket=server.new_bucket())
        content.write_files()
        damaged = old / "det" / checkpoint_id(2, 20) / "weights.json"
        whole = damaged.read_bytes()
        damaged.write_bytes(whole[:-1])
        with serving_old_master(OldMaster(content)) as address:
            status, said, failed = imported(cluster, address)
            assert status == 1
            assert "checkpoints copied: 7 new" in said
            assert f"not imported: checkpoint {checkpoint_id(2, 20)}: " in failed
            assert f"weights.json has {len(whole) - 1} bytes instead of {len(whole)}" in failed
            assert "not imported: experiment 1: 1 of its checkpoints did not come" in failed
            experiments = client.services.experiments
            assert [experiments.get(number).importing for number in (1, 2)] == [True, False]

            damaged.write_bytes(whole)
            status, said, _ = imported(cluster, address)
        assert (status, "checkpoints copied: 1 new" in said) == (0, True)
        assert not experiments.get(1).importing
        assert experiments.get(1).model_definition_size == len(base64.b64decode(code))

        shutil.rmtree(old)
        shutil.rmtree(tmp_path / "s3")
        for trial in (2, 3):
            found = client.services.checkpoints.get(checkpoint_id(trial, 20))
            assert isinstance(found.storage, DirectoryStorage)
            assert Path(found.storage.path).is_relative_to(cluster.home)
            assert [bool(file.digest) for file in found.files] == [False, True]
            weights = weights_after(client, found.uuid, tmp_path / f"code-{trial}")
            assert weights == json.loads(Content.files(trial, 20)["weights.json"])
        # They are its own: what is deleted here is gone.
        client.services.checkpoints.delete([checkpoint_id(2, 30)])
        assert client.services.checkpoints.get(checkpoint_id(2, 30)).state.name == "DELETED"


@dataclass(frozen=True, kw_only=True)
class InBucket(Content):
    """All experiments keep their checkpoints in one bucket of another provider."""

    server: GcsServer | AzureServer
    bucket: str

    def storage(self, number: int) -> dict[str, Any]:
        """Where the checkpoints of an experiment lie."""
        return dict(self.server.section(self.bucket))

    def write_files(self) -> None:
        """Writes all checkpoints to the bucket."""
        prefix = self.storage(1).get("prefix")
        for experiment in range(1, self.experiments + 1):
            for trial in self.trials_of(experiment):
                for checkpoint in self.checkpoints_of(trial):
                    files = self.files(trial, checkpoint["metadata"]["steps_completed"])
                    for path, content in files.items():
                        parts = [prefix, checkpoint["uuid"], path]
                        self.server.put(self.bucket, "/".join(part for part in parts if part), content)


@pytest.mark.parametrize("provider", ["gcs", "azure"])
def test_copies_come_from_buckets_of_other_providers(provider: str, tmp_path: Path) -> None:
    serving: Callable[[Path], AbstractContextManager[GcsServer | AzureServer]]
    serving = gcs_server if provider == "gcs" else azure_server
    with serving(tmp_path / "store") as server:
        variables = server.variables()
        if isinstance(server, GcsServer):
            # Who runs the import has credentials for the old bucket, as for `gcloud` and others.
            variables["GOOGLE_APPLICATION_CREDENTIALS"] = str(server.credentials)
        with embedded(tmp_path / "h", slots=2, **variables) as cluster, cluster.client() as client:
            bucket = server.new_bucket()
            content = InBucket(experiments=1, directory=tmp_path / "old", server=server, bucket=bucket)
            content.write_files()
            with serving_old_master(OldMaster(content)) as address:
                status, said, failed = imported(cluster, address)
                assert (status, failed.count("not imported")) == (0, 0), said + failed
            server.stop()
            copied = 0
            for trial in content.trials_of(1):
                for old in content.checkpoints_of(trial):
                    found = client.services.checkpoints.get(old["uuid"])
                    if old["state"] != "STATE_COMPLETED":
                        continue
                    assert isinstance(found.storage, DirectoryStorage)
                    wanted = content.files(trial, old["metadata"]["steps_completed"])
                    place = Path(found.storage.path) / old["uuid"]
                    assert {name: (place / name).read_bytes() for name in wanted} == wanted
                    copied += 1
            assert copied >= 3
