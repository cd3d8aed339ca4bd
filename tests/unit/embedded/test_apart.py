"""What a cluster of separate services begins with, and settings in files."""

from __future__ import annotations

import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_embedded.apart import environment
from resolute_embedded.apart.command import main
from resolute_embedded.apart.preparation import prepare
from resolute_serving.tls import TlsFiles


def test_files_add_settings_and_replace_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("# all\nRESOLUTE_A=1\nRESOLUTE_B=x=y\n\n")
    (tmp_path / "b").write_text("RESOLUTE_B=2\nRESOLUTE_C=3\n")
    variables = {"RESOLUTE_ENV_FILES": f"{tmp_path}/a:{tmp_path}/b", "RESOLUTE_C": "own"}
    environment.load(variables)
    assert variables["RESOLUTE_A"] == "1"
    assert variables["RESOLUTE_B"] == "2"
    assert variables["RESOLUTE_C"] == "own"


def test_a_file_that_cannot_be_read_and_a_line_that_is_no_setting_are_named(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="no-such"):
        environment.load({"RESOLUTE_ENV_FILES": str(tmp_path / "no-such")})
    (tmp_path / "odd").write_text("A=1\nexport B\n")
    with pytest.raises(InvalidArgumentError, match="odd:2"):
        environment.read(tmp_path / "odd")


def test_preparing_twice_keeps_what_is_there(tmp_path: Path) -> None:
    prepare(tmp_path, names=["gateway"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    prepare(tmp_path, names=["gateway"])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    shared = {"authority.pem", "server.pem", "password", "keys.env"}
    for path in before:
        others = stat.S_IMODE(path.stat().st_mode) & 0o077
        assert (others == 0) == (path.name not in shared), path
    prepare(tmp_path, names=["gateway", "hub.example"])
    assert (tmp_path / "server.pem").read_bytes() != before[tmp_path / "server.pem"]
    assert (tmp_path / "authority.pem").read_bytes() == before[tmp_path / "authority.pem"]


def test_the_password_of_an_older_cluster_moves_to_where_only_some_services_see_it(tmp_path: Path) -> None:
    prepare(tmp_path, names=["gateway"])
    moved = tmp_path / "database/pgpass"
    text = moved.read_text()
    assert text == f"*:*:*:*:{(tmp_path / 'database/password').read_text()}\n"
    moved.rename(tmp_path / "pgpass")
    prepare(tmp_path, names=["gateway"])
    assert (moved.read_text(), (tmp_path / "pgpass").exists()) == (text, False)


def test_the_gateway_has_a_folder_with_its_own_certificate_and_no_password(tmp_path: Path) -> None:
    prepare(tmp_path, names=["logs"], gateway_names=["gateway"])
    folder = tmp_path / "gateway"
    assert {path.name for path in folder.iterdir()} == {
        "cluster.env", "authority.pem", "server.pem", "server-key.pem"
    }  # fmt: skip
    assert (folder / "server-key.pem").read_bytes() != (tmp_path / "server-key.pem").read_bytes()
    for shared in ("cluster.env", "authority.pem"):
        assert (folder / shared).read_bytes() == (tmp_path / shared).read_bytes()


@pytest.mark.parametrize(("folder", "name"), [(".", "logs"), (".", "127.0.0.1"), ("gateway", "gateway")])
def test_who_trusts_the_authority_trusts_the_certificate(tmp_path: Path, folder: str, name: str) -> None:
    prepare(tmp_path, names=["logs"], gateway_names=["gateway"])
    own = tmp_path / folder
    files = TlsFiles(certificate=own / "server.pem", key=own / "server-key.pem")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "authority.pem"))
    left, right = socket.socketpair()
    serving = files.read().context
    server = threading.Thread(
        target=lambda: serving.wrap_socket(right, server_side=True).close(), name="server"
    )
    server.start()
    try:
        with trusting.wrap_socket(left, server_hostname=name) as connection:
            assert connection.version() == "TLSv1.3"
    finally:
        left.close()
        server.join()


def test_the_command_has_an_entry_for_each_service_and_says_which_setting_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RESOLUTE_CLUSTER_ID", raising=False)
    monkeypatch.delenv("RESOLUTE_ENV_FILES", raising=False)
    listed = CliRunner().invoke(main, ["--help"]).output
    for service in ("experiments", "searcher", "metrics", "logs", "checkpoints", "preemption", "gateway"):
        assert service in listed
    failed = CliRunner().invoke(main, ["health", "logs"])
    assert failed.exit_code == 1
    assert "RESOLUTE_CLUSTER_ID is not set" in failed.output
