"""A home that moves into PostgreSQL by one command: it is served from there, and its searches go on."""

from __future__ import annotations

from pathlib import Path

from support.clusters.embedded import EmbeddedCluster, embedded
from support.databases.postgres import PostgresServer, postgres_server
from support.history.old_home import packed_homes, unpack_home

__all__ = ["postgres_server"]
PAUSED = ("asha", "optuna", "random")


def test_a_home_is_served_from_postgresql_after_the_move(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    unpack_home(packed_homes()[-1], home)
    url = postgres_server.new_database()
    said = EmbeddedCluster(home).run("resolute", "db", "move", "--url", url, timeout=180).stdout
    assert "experiments: " in said
    assert "are in PostgreSQL; `resolute up` serves them from there" in said
    refused = EmbeddedCluster(home).run("resolute", "backup", str(tmp_path / "copy"), check=False)
    assert "pg_dump" in refused.stderr
    files = sorted((path, path.read_bytes()) for path in (home / "databases-before-move").iterdir())
    with embedded(home) as cluster:
        numbers = {one["name"]: str(one["id"]) for one in cluster.json("e", "list", "--all")}
        for name in PAUSED:
            cluster.det("e", "activate", numbers[name])
        for name in PAUSED:
            cluster.det("e", "wait", numbers[name], timeout=300)
        for number in numbers.values():
            cluster.det("search", "replay", number)
        trials = cluster.json("e", "list-trials", numbers["asha"])
        assert len(trials) == 8
        assert {one["state"] for one in trials} == {"COMPLETED"}
        assert (
            cluster.run("resolute", "doctor", check=False, timeout=240).stdout.count("of the newest schema")
            == 5
        )
    assert sorted((path, path.read_bytes()) for path in (home / "databases-before-move").iterdir()) == files
    assert (home / "databases").is_file()
