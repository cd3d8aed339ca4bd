"""The table of docs/access.md: whoever is asked for acts, or the call is refused."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import Client
from resolute.client.connection import credentials
from resolute.client.connection.home import Home
from resolute.errors import ResoluteError, UnauthenticatedError

pytestmark = pytest.mark.sampled(2, group="clusters of their own", files=True)

ACCESS = Path(__file__).parents[3] / "docs/access.md"
ROW = re.compile(r"^\| `([^`]* user whoami)` \| (\w*) ?\| (\w+) \| .* \|$", re.MULTILINE)
REFUSED = "refused"


@dataclass(frozen=True)
class People:
    """A cluster, and the users of one row of the table: each has two of its own, since sign-in has limits.

    Carol has no password.
    """

    cluster: EmbeddedCluster
    row: int

    @property
    def address(self) -> str:
        """Where commands reach the cluster: a sign-in is kept for that address."""
        if front := self.cluster.variables().get("RESOLUTE_MASTER"):
            return urlsplit(front).netloc
        return str(json.loads((self.cluster.home / "endpoint.json").read_text())["address"])

    def named(self, text: str) -> str:
        return re.sub(r"\b(carol|grace)\b", rf"\g<1>{self.row}", text)

    def token(self, name: str) -> str:
        return self.cluster.run("resolute", "token", "create", self.named(name)).stdout.split()[-1]

    def parts(self, command: str) -> tuple[dict[str, str], list[str]]:
        """The variables of a command of the table, and its words after `det`."""
        command = re.sub(r"TOKEN_OF_(\w+)", lambda found: self.token(found[1].lower()), self.named(command))
        words = shlex.split(command.replace("HOST:PORT", self.address))
        at = words.index("det")
        return dict(word.split("=", 1) for word in words[:at]), words[at + 1 :]


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home") / "h", slots=1) as cluster:
        yield cluster


_numbers = itertools.count(1)


@pytest.fixture
def people(own_cluster: EmbeddedCluster) -> Iterator[People]:
    people = People(own_cluster, next(_numbers))
    with own_cluster.client() as admin:
        admin.create_user(people.named("carol"))
        admin.create_user(people.named("grace"), password="her-secret")
    yield people
    credentials.delete(Home(own_cluster.home).credential_file(people.address))


def rows() -> list[tuple[str, str, str]]:
    return [(command, signed_in, acts) for command, signed_in, acts in ROW.findall(ACCESS.read_text())]


def test_the_table_is_found() -> None:
    assert len(rows()) > 20


@pytest.mark.parametrize(("command", "signed_in", "acts"), rows())
def test_whoever_is_asked_for_acts(
    people: People, command: str, signed_in: str, acts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables, words = people.parts(command)
    if signed_in:
        stored = Home(people.cluster.home).credential_file(people.address)
        credentials.save(stored, people.token(signed_in))
    acts = people.named(acts)
    told = replace(people.cluster, environment=variables).det(*words, check=False)
    assert (told.stdout.strip() if told.returncode == 0 else REFUSED) == acts, told.stderr
    if variables.get("DET_PASS") == "wrong":
        assert f"the password given for user {people.named('grace')}, as in DET_PASS" in told.stderr
        assert "refused the token" not in told.stderr
    people.cluster.name_in(monkeypatch)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    options = dict(zip(words[:-2:2], words[1:-2:2], strict=True))
    try:
        with Client(options.get("-m"), options.get("-u")) as client:
            found = client.get_session_username()
    except ResoluteError:
        found = REFUSED
    assert found == acts


def test_a_blank_password_is_one_for_the_client_too(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    people.cluster.name_in(monkeypatch)
    carol = people.named("carol")
    with (
        Client(user=carol, password="") as client,
        pytest.raises(UnauthenticatedError, match=f"the empty password given for user {carol}"),
    ):
        client.whoami()
