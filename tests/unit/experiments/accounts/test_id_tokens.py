"""ID tokens that are not accepted, and how often the provider is asked about them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from support.clocks import ManualClock
from support.odd_provider import odd_provider

from resolute.errors import PermissionDeniedError, ResoluteError, UnauthenticatedError, UnavailableError
from resolute_experiments.accounts.openid.id_tokens import Identity, IdTokenVerifier
from resolute_experiments.accounts.openid.settings import GroupRole, OpenIdSettings
from resolute_serving.context import Role


class Signer:
    """A provider that signs what it is told, a verifier that asks it, and their clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.asked: list[str] = []
        self.broken = False
        self.issuer = ""
        self._key = ec.generate_private_key(ec.SECP256R1())

    def answer(self, path: str) -> Mapping[str, Any] | bytes:
        """Answers as a provider does."""
        self.asked.append(path)
        if self.broken:
            return b"broken"
        if path == "/keys":
            public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key()))
            return {"keys": [{**public, "kid": "known", "use": "sig", "alg": "ES256"}]}
        return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}

    def token(self, *, kid: str = "known", typ: str = "JWT", **changes: Any) -> str:
        """Signs a token."""
        now = self.clock.time()
        claims = {
            "iss": self.issuer,
            "aud": "resolute",
            "sub": "1",
            "iat": now,
            "exp": now + 60,
            "groups": [],
        }
        return jwt.encode(
            {**claims, **changes}, self._key, algorithm="ES256", headers={"kid": kid, "typ": typ}
        )

    def verify(self, verifier: IdTokenVerifier, token: str) -> Identity:
        """Lets the verifier decide."""
        return asyncio.run(verifier.verify(token, nonce=""))


def scenario(run: Any) -> None:
    """Runs a test with a signer and its verifier."""
    signer = Signer()
    with odd_provider(signer.answer) as issuer:
        signer.issuer = issuer
        roles = (GroupRole("staff", Role.EDITOR, workspace=""),)
        settings = OpenIdSettings(issuer=issuer, client_id="resolute", roles=roles)
        verifier = IdTokenVerifier(settings, signer.clock)
        try:
            run(signer, verifier)
        finally:
            verifier.close()


def test_tokens_for_others_never_make_this_service_ask_the_provider() -> None:
    def run(signer: Signer, verifier: IdTokenVerifier) -> None:
        deep = "[" * 100_000
        for token in (
            "a guess",
            signer.token(iss="https://other.example"),
            signer.token(aud="another"),
            signer.token(typ="at+jwt"),
            jwt.encode({"iss": signer.issuer, "aud": "resolute"}, "s" * 32, headers={"kid": "known"}),
            f"{jwt.utils.base64url_encode(deep.encode()).decode()}.e30.e30",
        ):
            with pytest.raises(UnauthenticatedError):
                signer.verify(verifier, token)
        assert signer.asked == []

    scenario(run)


def test_the_clock_of_the_service_decides_and_a_token_for_several_names_this_client() -> None:
    def run(signer: Signer, verifier: IdTokenVerifier) -> None:
        now = signer.clock.time()  # years ago
        both = ["resolute", "another"]
        assert signer.verify(verifier, signer.token(aud=both, azp="resolute")).subject == "1"
        for changes, problem in (
            ({"exp": now - 61}, "has expired"),
            ({"iat": now + 61}, "not valid yet"),
            ({"nbf": now + 61}, "not valid yet"),
            ({"iat": now - 601}, "older than ten minutes"),
            ({"exp": "soon"}, "not accepted"),
            ({"azp": "another"}, "issued to another client"),
            ({"aud": both}, "issued to another client"),
        ):
            with pytest.raises(UnauthenticatedError, match=problem):
                signer.verify(verifier, signer.token(**changes))
        with pytest.raises(PermissionDeniedError, match="no claim 'groups'"):
            signer.verify(verifier, signer.token(groups=None))

    scenario(run)


def test_the_provider_is_asked_for_its_keys_now_and_then_whatever_is_sent() -> None:
    def run(signer: Signer, verifier: IdTokenVerifier) -> None:
        def ask(kid: str, refusal: type[ResoluteError] | None) -> int:
            before = signer.asked.count("/keys") if not signer.broken else len(signer.asked)
            if refusal is None:
                signer.verify(verifier, signer.token(kid=kid))
            else:
                with pytest.raises(refusal):
                    signer.verify(verifier, signer.token(kid=kid))
            return (signer.asked.count("/keys") if not signer.broken else len(signer.asked)) - before

        signer.broken = True
        assert [ask("known", UnavailableError) for _ in range(3)] == [1, 0, 0]
        signer.broken = False
        assert ask("known", UnavailableError) == 0
        signer.clock.advance(30)
        assert [ask("known", None) for _ in range(2)] == [1, 0]
        assert ask("unknown", UnauthenticatedError) == 0
        signer.clock.advance(30)
        assert [ask("unknown", UnauthenticatedError) for _ in range(3)] == [1, 0, 0]
        signer.clock.advance(299)
        assert ask("known", None) == 0
        signer.clock.advance(1)
        assert ask("known", None) == 1  # a key that the provider has withdrawn counts no longer

    scenario(run)
