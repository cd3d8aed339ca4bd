"""Finding the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resolute.client.connection import credentials, discovery
from resolute.client.connection.endpoint import find_endpoint, named_user, parse_address
from resolute.client.connection.home import Home
from resolute.client.connection.session import Session
from resolute.contracts.calls.tls import ClientTls
from resolute.errors import FailedPreconditionError, InvalidArgumentError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("own\n")
    endpoint = {
        "address": "127.0.0.1:7000",
        "token_path": str(tmp_path / "token"),
        "cluster_id": "c",
        "pid": 12,
    }
    (tmp_path / "endpoint.json").write_text(json.dumps(endpoint))
    return tmp_path


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("host", "host:8080"),
        ("host:1", "host:1"),
        ("http://host:80/", "host:80"),
        ("https://Host", "host:8080"),
        ("[::1]:5", "[::1]:5"),
        ("127.0.0.1:8081", "127.0.0.1:8081"),
    ],
)
def test_addresses_are_taken_as_people_write_them(written: str, address: str) -> None:
    assert parse_address(written) == address


@pytest.mark.parametrize(
    "written", ["host:port", ":80", "http://", "https://", "host:99999", "[::1", "ftp://host:1"]
)
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(InvalidArgumentError, match="write HOST:PORT"):
        parse_address(written)


def test_the_embedded_cluster_of_the_home_is_the_default(home: Path) -> None:
    found = find_endpoint(environment={"RESOLUTE_HOME": str(home)})
    assert found.address == "127.0.0.1:7000"
    assert found.token() == "own"
    (home / "token").write_text("renewed")
    assert found.token() == "renewed"


def test_the_command_line_goes_before_the_environment_before_the_home(home: Path) -> None:
    environment = {"RESOLUTE_HOME": str(home), "DET_MASTER": "det", "RESOLUTE_MASTER": "res"}
    assert find_endpoint("given:1", environment=environment).address == "given:1"
    assert find_endpoint(environment=environment).address == "res:8080"
    del environment["RESOLUTE_MASTER"]
    assert find_endpoint(environment=environment).address == "det:8080"
    environment = {"RESOLUTE_HOME": str(home), "DET_MASTER_ADDR": "addr"}
    assert find_endpoint(environment=environment).address == "addr:8080"


def test_tls_is_not_dropped_for_the_plain_port_of_the_own_cluster(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"RESOLUTE_HOME": str(home)}
    monkeypatch.setattr(discovery, "grpc_address", lambda *_, **__: "")
    for written in ("https://127.0.0.1:7000", "HTTPS://localhost:7000/"):
        with pytest.raises(InvalidArgumentError, match=r"asks for TLS, .* without it: give 127.0.0.1:7000"):
            find_endpoint(written, environment=environment)
    assert find_endpoint("http://localhost:7000", environment=environment).token() == "own"
    # A gateway with TLS may name that port.
    monkeypatch.setattr(discovery, "grpc_address", lambda *_, **__: "127.0.0.1:7000")
    assert find_endpoint("https://localhost:7001", environment=environment).token() == "own"


def test_scripts_of_runs_use_the_token_of_the_run_and_no_other(home: Path) -> None:
    renewed = home / "user-token"
    environment = {"RESOLUTE_HOME": str(home), "RESOLUTE_TOKEN_FILE": str(renewed), "DET_MASTER": "node:1"}
    for master in ("node:1", "127.0.0.1:7000"):
        renewed.unlink(missing_ok=True)
        found = find_endpoint(master, environment=environment)
        assert found.token() == ""  # not that of the home, which is the operator's
        renewed.write_text("first\n")
        assert found.token() == "first"
        renewed.write_text("second")
        assert found.token() == "second"
    environment["RESOLUTE_TOKEN"] = "chosen"
    assert find_endpoint(environment=environment).token() == "chosen"


def test_the_documented_variables_name_the_user(home: Path) -> None:
    environment = {"RESOLUTE_HOME": str(home), "DET_USER": "grace", "DET_PASS": "secret"}
    assert named_user(environment) == ("grace", "secret")
    assert Session.find(environment=environment).user == "grace"
    assert Session.find(user="ada", environment=environment).user == "ada"
    assert named_user({"DET_USER": "grace"}) == ("grace", None)
    assert named_user({"DET_USER": "grace", "DET_PASS": ""}) == ("grace", "")
    assert named_user({"DET_PASS": "secret"}) == ("", None)
    environment["DET_USER_TOKEN"] = "theirs"
    assert Session.find(environment=environment).user == "grace", "a name with a password comes first"
    del environment["DET_PASS"]
    assert Session.find(environment=environment).user == ""
    assert find_endpoint(environment=environment).token() == "theirs"
    environment["RESOLUTE_TOKEN"] = " "
    assert find_endpoint(environment=environment).token() == "theirs", "a blank token is none"
    environment["RESOLUTE_TOKEN"] = "chosen"
    environment["DET_PASS"] = "secret"
    assert Session.find(environment=environment).user == ""
    assert find_endpoint(environment=environment).token() == "chosen"


@pytest.mark.parametrize("password", ["secret", ""])
def test_a_password_needs_a_user(home: Path, password: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a password is given and no user"):
        Session.find(password=password, environment={"RESOLUTE_HOME": str(home)})


def test_the_embedded_clusters_token_is_for_it_alone(home: Path) -> None:
    environment = {"RESOLUTE_HOME": str(home)}
    assert find_endpoint("elsewhere:1", environment=environment).token() == ""
    assert find_endpoint("localhost:7000", environment=environment).token() == "own"
    (home / "endpoint.json").unlink()
    assert find_endpoint("elsewhere:1", environment=environment).token() == "own"


def test_a_token_of_the_environment_goes_before_files(home: Path) -> None:
    environment = {"RESOLUTE_HOME": str(home), "RESOLUTE_TOKEN": " given "}
    for master in ("", "elsewhere:1"):
        found = find_endpoint(master, environment=environment)
        assert found.token() == "given"
        assert found.token_origin == "from RESOLUTE_TOKEN"


def test_a_token_in_another_encoding_is_named(tmp_path: Path) -> None:
    """As older shells of Windows redirect output into files."""
    token = tmp_path / "token.txt"
    token.write_text("abc\r\n", encoding="utf-16")
    endpoint = find_endpoint("node:1", environment={"RESOLUTE_TOKEN_FILE": str(token)})
    with pytest.raises(FailedPreconditionError, match=r"token\.txt: it is not text in UTF-8; give one in"):
        endpoint.token()
    assert credentials.read(token) == ""


def test_a_missing_token_file_is_no_token(home: Path) -> None:
    (home / "token").unlink()
    assert find_endpoint(environment={"RESOLUTE_HOME": str(home)}).token() == ""


def test_no_cluster_at_all_says_where_one_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="none was started on this machine"):
        find_endpoint(environment={"RESOLUTE_HOME": str(tmp_path)})


def test_a_cluster_that_was_stopped_is_said_to_be_down(tmp_path: Path) -> None:
    (tmp_path / "home.json").write_text("{}")
    with pytest.raises(FailedPreconditionError, match=f"the cluster in {tmp_path} is down, no address"):
        find_endpoint(environment={"RESOLUTE_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"address": "x"}', '{"address":"a","token_path":"b","pid":"z"}']
)
def test_a_damaged_endpoint_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "endpoint.json").write_text(content)
    with pytest.raises(FailedPreconditionError, match=r"endpoint\.json is damaged"):
        find_endpoint(environment={"RESOLUTE_HOME": str(tmp_path)})


def test_a_home_that_is_no_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FailedPreconditionError, match="Not a directory"):
        find_endpoint(environment={"RESOLUTE_HOME": str(tmp_path / "file")})


PEM = b"-----BEGIN CERTIFICATE-----"


def test_a_certificate_is_read(home: Path) -> None:
    (home / "ca.pem").write_bytes(PEM)
    environment = {
        "RESOLUTE_HOME": str(home),
        "DET_MASTER_CERT_FILE": str(home / "ca.pem"),
        "DET_MASTER_CERT_NAME": "a",
    }
    assert find_endpoint("far:1", environment=environment).tls == ClientTls(authority=PEM, server_name="a")
    with pytest.raises(FailedPreconditionError, match="RESOLUTE_MASTER_CERT: cannot read /gone"):
        find_endpoint("far:1", environment={**environment, "RESOLUTE_MASTER_CERT": "/gone"})


def test_the_home_is_below_the_users_own_by_default() -> None:
    assert Home.from_environment({}).path == Path("~/.resolute").expanduser()


def test_the_token_of_a_login_is_for_its_own_cluster_and_before_the_homes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.token_file.write_text("operator")
    credentials.save(home.credential_file("here:1"), "logged in")
    environment = {"RESOLUTE_HOME": str(tmp_path)}
    assert find_endpoint("here:1", environment=environment).token() == "logged in"
    assert find_endpoint("there:1", environment=environment).token() == "operator"
    chosen = {**environment, "RESOLUTE_TOKEN": "given"}
    assert find_endpoint("here:1", environment=chosen).token() == "given"
    assert credentials.delete(home.credential_file("here:1"))
    assert not credentials.delete(home.credential_file("here:1"))
    assert find_endpoint("here:1", environment=environment).token() == "operator"
