"""The key that signs a cluster's tokens."""

from __future__ import annotations

from pathlib import Path

from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.service import Environment


def test_a_key_that_lies_elsewhere_is_the_only_one(tmp_path: Path) -> None:
    """Other services verify by the key that the setting names."""
    keys, data = tmp_path / "keys", tmp_path / "data"
    keys.mkdir(mode=0o700)
    data.mkdir(mode=0o700)
    load_or_create_key(keys / "signing-key.pem")
    environment = Environment(
        database_url=f"sqlite:///{data}/experiments.sqlite",
        data_directory=data,
        peers=Peers({}, token=str),
        signing_key_file=keys / "signing-key.pem",
        cluster_id="5b8f2b1e-0000-4000-8000-000000000000",
    )
    BLUEPRINT.create(environment)
    assert [path.name for path in tmp_path.rglob("*.pem")] == ["signing-key.pem"]
