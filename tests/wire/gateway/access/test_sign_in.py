"""A browser is signed in by a one-time code, makes calls under its cookie, and is signed out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from support.services.access import calls
from support.services.gateway import CLUSTER, GatewayClient, gateway
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key

CURRENT_USER = "/resolute.api.experiments.v1.AccessService/GetCurrentUser"
FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
LISTED = "https://page.example"
PASSWORD = "a long påss phrase & more"


@dataclass(frozen=True)
class Browser:
    """A gateway in front of the real service, and what a browser sends to it."""

    running: Running
    http: GatewayClient

    @property
    def own(self) -> Mapping[str, str]:
        """What a browser says of requests of the gateway's own pages."""
        return {"origin": f"http://127.0.0.1:{self.http.port}"}

    async def code(self) -> str:
        """A new code of the user ada."""
        async with calls(self.running, self.running.user_token()) as admin:
            ada = await admin.access.ListUsers(pb2.ListUsersRequest(names=["ada"]))
            if not ada.users:
                await admin.user("ada")
            created = await admin.access.CreateSignInCode(pb2.CreateSignInCodeRequest())
            return str(created.code)

    async def sign_in(self, code: str, **headers: str) -> Any:
        """Sends the form with a code."""
        return await self.send({"code": code}, **headers)

    async def send(self, fields: Mapping[str, str], **headers: str) -> Any:
        """Sends the form."""
        sent = {**FORM, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.http.request("POST", "/sign-in", body=urlencode(fields).encode(), headers=sent)

    async def session(self) -> str:
        """Signs in; returns the cookie, as a browser sends it."""
        answer = await self.sign_in(await self.code(), **self.own)
        assert answer.status == 303, answer.data
        return str(answer.headers["set-cookie"]).partition(";")[0]

    async def call(self, cookie: str, headers: Mapping[str, str]) -> Any:
        """Asks who calls."""
        sent = {**JSON, "cookie": cookie, **headers}
        return await self.http.request("POST", CURRENT_USER, body=b"{}", headers=sent)


def run(tmp_path: Path, scenario: Callable[[Browser], Awaitable[None]]) -> None:
    async def serve() -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving([BLUEPRINT], tmp_path, key=key) as running,
            gateway(running.address, origins=frozenset({LISTED})) as http,
        ):
            await scenario(Browser(running, http))

    asyncio.run(asyncio.wait_for(serve(), 120))


def test_a_code_becomes_a_cookie_that_no_script_reads_and_no_other_site_sends(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        code = await browser.code()
        signed_in = await browser.sign_in(code, **browser.own)
        assert (signed_in.status, signed_in.headers["location"]) == (303, "./")
        name, _, rest = signed_in.headers["set-cookie"].partition("=")
        assert name == f"resolute-{CLUSTER}"
        attributes = rest.split("; ")[1:]
        assert {"Path=/", "HttpOnly", "SameSite=strict"} <= set(attributes)
        (age,) = [int(one.removeprefix("Max-Age=")) for one in attributes if one.startswith("Max-Age=")]
        assert 0 < age <= 7 * 86_400
        again = await browser.sign_in(code, **browser.own)
        assert (again.status, "set-cookie" in again.headers) == (401, False)
        # Behind a proxy with TLS, the browser's own words tell that there is one.
        secured = await browser.sign_in(
            await browser.code(), origin=LISTED, **{"sec-fetch-site": "same-origin"}
        )
        assert secured.headers["set-cookie"].endswith("; Secure")

    run(tmp_path, scenario)


def test_calls_of_the_own_pages_alone_are_made_under_the_cookie(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        cookie = await browser.session()
        answered = await browser.call(cookie, browser.own)
        assert answered.json()["user"]["name"] == "ada"
        other_port = {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"}
        for headers, status in (
            ({}, 401),  # not a page
            ({"origin": LISTED}, 401),  # may call, with a token of its own
            ({"origin": LISTED, "sec-fetch-site": "cross-site"}, 401),
            (other_port, 403),
        ):
            assert (await browser.call(cookie, headers)).status == status, headers
        value = cookie.partition("=")[2]
        assert (await browser.call(f"resolute-another={value}", browser.own)).status == 401
        assert (await browser.call(f"{cookie}x", browser.own)).status == 401
        own_token = {"authorization": "Bearer nothing", **browser.own}
        assert (await browser.call(cookie, own_token)).status == 401
        by_get = await browser.http.request("GET", CURRENT_USER, headers={"cookie": cookie, **browser.own})
        assert by_get.status == 404

    run(tmp_path, scenario)


def test_other_pages_sign_nobody_in_or_out(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        code, cookie = await browser.code(), await browser.session()
        for headers in ({}, {"origin": LISTED}, {"origin": "null"}, {"sec-fetch-site": "same-site"}):
            assert (await browser.sign_in(code, **headers)).status == 403
            out = await browser.http.request("POST", "/sign-out", headers={"cookie": cookie, **headers})
            assert out.status == 403
        assert (await browser.call(cookie, browser.own)).status == 200
        assert (await browser.sign_in(code, **browser.own)).status == 303
        as_json = await browser.http.request(
            "POST", "/sign-in", body=b'{"code": "x"}', headers={**JSON, **browser.own}
        )
        assert as_json.status == 400
        assert (await browser.sign_in("x" * 20_000, **browser.own)).status == 400

    run(tmp_path, scenario)


@pytest.mark.usefixtures("cheap_hashes")
def test_a_name_and_a_password_become_a_session_of_a_week(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async with calls(browser.running, browser.running.user_token()) as admin:
            grace = await admin.user("grace")
            await admin.access.SetPassword(pb2.SetPasswordRequest(user_id=grace.user_id, password=PASSWORD))
        right, wrong = {"user": " grace ", "password": PASSWORD}, {"user": "grace", "password": "guess"}
        signed_in = await browser.send(right, **browser.own)
        session, device = signed_in.headers.getlist("set-cookie")
        assert "Max-Age=604800" in session
        assert device.startswith(f"resolute-{CLUSTER}-device=")
        assert "HttpOnly" in device
        answered = await browser.call(session.partition(";")[0], browser.own)
        assert answered.json()["user"]["name"] == "grace"
        # The device token authenticates nobody.
        assert (await browser.call(device.partition(";")[0], browser.own)).status == 401
        assert (await browser.send(wrong, **browser.own)).status == 401
        led_back = await browser.send(wrong, accept="text/html", **browser.own)
        assert (led_back.status, led_back.headers["location"]) == (303, "sign-in?refused=password")
        for other in (right | {"password": ""}, {"user": "grace"}, {"password": PASSWORD}, {}):
            assert (await browser.send(other, **browser.own)).status == 400
        assert (await browser.send(right, origin=LISTED)).status == 403

    run(tmp_path, scenario)


def test_the_form_says_why_an_attempt_was_refused_and_nothing_that_a_link_says(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        for word, said in (
            ("attempts", "too many attempts"),
            ("password", "is wrong"),
            ("<b>x</b>", "<p></p>"),
        ):
            page = await browser.http.request("GET", "/sign-in?" + urlencode({"refused": word}))
            assert said in page.data.decode()
            assert "<b>x" not in page.data.decode()

    run(tmp_path, scenario)


def test_signing_out_revokes_the_token(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        cookie = await browser.session()
        out = await browser.http.request("POST", "/sign-out", headers={"cookie": cookie, **browser.own})
        assert out.status == 303
        assert re.search(r'=""; .*Max-Age=0', out.headers["set-cookie"])
        assert (await browser.call(cookie, browser.own)).status == 401
        again = await browser.http.request("POST", "/sign-out", headers={"cookie": cookie, **browser.own})
        assert again.status == 303

    run(tmp_path, scenario)


def test_the_page_takes_the_code_of_a_link_and_runs_nothing(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        page = await browser.http.request("GET", "/sign-in?" + urlencode({"code": '"><script>x</script>'}))
        text = page.data.decode()
        assert 'value="&quot;&gt;&lt;script&gt;x&lt;/script&gt;"' in text
        assert 'action="sign-in"' in text  # relative, so that it works below a path of a proxy
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "form-action 'self'" in policy
        # With no-referrer, browsers would say that the form comes from nowhere.
        assert page.headers.getlist("referrer-policy") == ["same-origin"]

    run(tmp_path, scenario)


def test_the_page_says_whose_session_a_code_begins(tmp_path: Path) -> None:
    async def scenario(browser: Browser) -> None:
        async def shown(code: str) -> str:
            page = await browser.http.request("GET", "/sign-in?" + urlencode({"code": code}))
            return str(page.data.decode())

        code = await browser.code()
        page = await shown(code)
        assert "This code begins a session of the user <b>ada</b>." in page
        assert page.count("<button>") == 1
        assert "<button>Sign in as ada</button>" in page
        # Whoever writes another name into a link has another code, which signs nobody in.
        forged = code.replace("ada.", "grace.", 1)
        assert "<b>grace</b>" in await shown(forged)
        assert (await browser.sign_in(forged, **browser.own)).status == 401
        for other in (
            "",
            code.removeprefix("ada."),
            "ada.short",
            "<b>x</b>." + "a" * 30,
            "a\u202eb." + "a" * 30,
        ):
            assert "<button>Sign in</button>" in await shown(other)
        assert (await browser.sign_in(code, **browser.own)).status == 303

    run(tmp_path, scenario)
