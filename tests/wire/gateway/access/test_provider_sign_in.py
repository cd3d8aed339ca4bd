"""A browser signs in with a real OpenID provider: the code flow, with PKCE."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from support.daemons.odd_provider import silent_provider
from support.daemons.openid_provider import CLIENT, Provider, openid_provider
from support.services.gateway import CLUSTER, GatewayClient, gateway
from support.services.in_process import serving
from support.waiting import wait_until_async

from resolute.contracts.calls import openid
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key

BEGIN, RETURN = "/sign-in/provider", "/sign-in/provider/return"
CURRENT_USER = "/resolute.api.experiments.v1.AccessService/GetCurrentUser"
FLOW, SESSION = f"resolute-{CLUSTER}-sign-in", f"resolute-{CLUSTER}"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    accounts = {
        "1": {"preferred_username": "ada", "groups": ["staff"]},
        "2": {"preferred_username": "eve", "groups": []},
    }
    with openid_provider(accounts) as served:
        yield served


@dataclass(frozen=True)
class Browser:
    """A gateway, and what a browser sends to it."""

    http: GatewayClient
    provider: Provider

    async def get(self, path: str, cookie: str = "", **headers: str) -> Any:
        """Asks for a page."""
        return await self.http.request("GET", path, headers={"cookie": cookie, **headers})

    async def begin(self) -> tuple[Mapping[str, str], str, str]:
        """Begins a sign-in; returns what the provider is asked, its whole URL, and the cookie."""
        begun = await self.get(BEGIN)
        assert begun.status == 303, begun.data
        location = begun.headers["location"]
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        return asked, location, cookies(begun)[FLOW].partition(";")[0]

    async def come_back(self, location: str, *, login: str = "1") -> str:
        """Signs in at the provider; returns where it leads the browser: path and query."""
        target = await asyncio.to_thread(self.provider.authorize, location, login=login)
        assert target.startswith(f"http://127.0.0.1:{self.http.port}{RETURN}?")
        return target.removeprefix(f"http://127.0.0.1:{self.http.port}")


def cookies(answer: Any) -> dict[str, str]:
    """The cookies that an answer sets: value and attributes by name."""
    return dict(one.split("=", 1) for one in answer.headers.getlist("set-cookie"))


def run(tmp_path: Path, provider: Provider, scenario: Callable[[Browser], Awaitable[None]]) -> None:
    async def serve() -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving([BLUEPRINT], tmp_path, key=key) as running,
            gateway(running.address) as http,
        ):
            await scenario(Browser(http, provider))

    asyncio.run(asyncio.wait_for(serve(), 120))


@pytest.fixture
def known(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster knows the provider."""
    monkeypatch.setenv("RESOLUTE_OPENID_ISSUER", provider.issuer)
    monkeypatch.setenv("RESOLUTE_OPENID_CLIENT_ID", CLIENT)
    monkeypatch.setenv("RESOLUTE_OPENID_ROLES", "staff=editor")


@pytest.mark.usefixtures("known")
def test_a_browser_signs_in_and_is_led_to_this_gateway_alone(tmp_path: Path, provider: Provider) -> None:
    async def scenario(browser: Browser) -> None:
        assert b'<a href="sign-in/provider">Sign in with http' in (await browser.get("/sign-in")).data
        asked, location, flow = await browser.begin()
        assert location.startswith(f"{provider.issuer}/")
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["redirect_uri"] == f"http://127.0.0.1:{browser.http.port}{RETURN}"
        target = await browser.come_back(location)
        signed_in = await browser.get(f"{target}&next=https://evil.example", f"{FLOW}={flow}")
        assert (signed_in.status, signed_in.headers["location"]) == (303, "../../"), signed_in.data
        written = cookies(signed_in)
        session, _, attributes = written[SESSION].partition(";")
        assert {"Path=/", "HttpOnly", "SameSite=strict"} <= set(attributes.strip().split("; "))
        assert written[FLOW].startswith('""; ')
        assert "Max-Age=0" in written[FLOW]
        called = await browser.http.request(
            "POST",
            CURRENT_USER,
            body=b"{}",
            headers={
                "content-type": "application/json",
                "cookie": f"{SESSION}={session}",
                "origin": f"http://127.0.0.1:{browser.http.port}",
            },
        )
        assert called.json()["user"]["name"] == "ada"
        again = await browser.get(target, f"{FLOW}={flow}")
        assert (again.status, SESSION in cookies(again)) == (401, False)

    run(tmp_path, provider, scenario)


@pytest.mark.usefixtures("known")
def test_the_answer_of_the_provider_is_worth_nothing_elsewhere(tmp_path: Path, provider: Provider) -> None:
    async def scenario(browser: Browser) -> None:
        asked, location, flow = await browser.begin()
        state, nonce, verifier = flow.split(".")
        assert (asked["state"], asked["nonce"]) == (state, nonce)
        _, _, of_another = await browser.begin()
        answered = parse_qs(urlsplit(await browser.come_back(location)).query)
        given = {name: values[0] for name, values in answered.items()}
        refused = {"error": "access_denied", "error_description": "no", "state": state}
        for cookie, query, said in (
            ("", given, "this browser did not begin"),
            (of_another, given, "this browser did not begin"),
            (flow, {**given, "state": ""}, "this browser did not begin"),
            (flow, {**given, "iss": "https://other.example"}, "another provider answered"),
            (flow, refused, "did not sign you in: no"),
            (f"{state}.{nonce}.{verifier[::-1]}", given, "did not sign you in"),
        ):
            answer = await browser.get(f"{RETURN}?{urlencode(query)}", f"{FLOW}={cookie}")
            assert (answer.status, SESSION in cookies(answer)) == (401, False)
            assert said in answer.json()["message"]

    run(tmp_path, provider, scenario)


@pytest.mark.usefixtures("known")
def test_an_id_token_of_another_sign_in_and_a_person_without_a_role_are_refused(
    tmp_path: Path, provider: Provider
) -> None:
    async def scenario(browser: Browser) -> None:
        _, location, flow = await browser.begin()
        state, nonce, verifier = flow.split(".")
        target = await browser.come_back(location)
        answer = await browser.get(target, f"{FLOW}={state}.{nonce[::-1]}.{verifier}")
        assert (answer.status, SESSION in cookies(answer)) == (401, False)
        assert "another sign-in" in answer.json()["message"]
        _, location, flow = await browser.begin()
        answer = await browser.get(await browser.come_back(location, login="2"), f"{FLOW}={flow}")
        assert (answer.status, SESSION in cookies(answer)) == (403, False)
        forged = await browser.get(BEGIN, host="evil.example")
        assert (forged.status, forged.headers.get("location")) == (421, None)

    run(tmp_path, provider, scenario)


def test_a_provider_that_does_not_answer_holds_a_few_threads_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(threading.enumerate())

    def held() -> int:
        new = set(threading.enumerate()) - before
        return sum(one.name.startswith("gateway-openid-begin") for one in new)

    async def scenario(browser: Browser) -> None:
        asking = [asyncio.create_task(browser.get(BEGIN)) for _ in range(12)]
        await wait_until_async(lambda: held() > 0)
        silence.close()
        answers = await asyncio.gather(*asking)
        assert {answer.status for answer in answers} == {503}
        assert held() <= 4

    with ExitStack() as silence:
        silent = Provider(silence.enter_context(silent_provider()))
        monkeypatch.setenv("RESOLUTE_OPENID_ISSUER", silent.issuer)
        monkeypatch.setenv("RESOLUTE_OPENID_CLIENT_ID", CLIENT)
        monkeypatch.setenv("RESOLUTE_OPENID_ROLES", "staff=editor")
        run(tmp_path, silent, scenario)


@pytest.mark.usefixtures("known")
def test_the_provider_describes_itself_once_for_many_sign_ins(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    describe = openid.describe

    def counted(issuer: str) -> Mapping[str, Any]:
        asked.append(issuer)
        return describe(issuer)

    monkeypatch.setattr(openid, "describe", counted)

    async def scenario(browser: Browser) -> None:
        for _ in range(3):
            await browser.begin()
        assert asked == [provider.issuer]

    run(tmp_path, provider, scenario)


def test_without_a_provider_none_is_offered(tmp_path: Path, provider: Provider) -> None:
    async def scenario(browser: Browser) -> None:
        assert b"sign-in/provider" not in (await browser.get("/sign-in")).data
        for path in (BEGIN, f"{RETURN}?state=a&code=b"):
            answer = await browser.get(path, f"{FLOW}=a.b.c")
            assert (answer.status, answer.headers.getlist("set-cookie")) == (400, [])

    run(tmp_path, provider, scenario)
