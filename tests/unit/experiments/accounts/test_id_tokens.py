"""Which ID tokens sign in: of a key's own algorithm, with the nonce of the sign-in, about somebody."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from support.clocks import ManualClock

from resolute.errors import UnauthenticatedError
from resolute_experiments.accounts.openid.id_tokens import IdTokenVerifier
from resolute_experiments.accounts.openid.settings import OpenIdSettings

_CLIENT = "resolute"


@dataclass(frozen=True)
class _Issuer:
    url: str
    key: rsa.RSAPrivateKey
    clock: ManualClock

    def token(self, *, algorithm: str = "RS256", **claims: Any) -> str:
        now = int(self.clock.time())
        known = {
            "iss": self.url,
            "aud": _CLIENT,
            "sub": "1",
            "iat": now,
            "exp": now + 3600,
            "groups": ["staff"],
        }
        return jwt.encode({**known, **claims}, self.key, algorithm=algorithm, headers={"kid": "k"})


@contextmanager
def _issuing(*, names_algorithm: bool = True) -> Iterator[tuple[_Issuer, IdTokenVerifier]]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    published = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    published |= {"kid": "k", "use": "sig"} | ({"alg": "RS256"} if names_algorithm else {})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://127.0.0.1:{self.connection.getsockname()[1]}"
            documents = {
                "/.well-known/openid-configuration": {"issuer": url, "jwks_uri": f"{url}/keys"},
                "/keys": {"keys": [published]},
            }
            body = json.dumps(documents[self.path]).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="issuer")
    thread.start()
    clock = ManualClock()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    settings = OpenIdSettings.from_environment(
        {
            "RESOLUTE_OPENID_ISSUER": url,
            "RESOLUTE_OPENID_CLIENT_ID": _CLIENT,
            "RESOLUTE_OPENID_ROLES": "staff=member",
        }
    )
    assert settings is not None
    verifier = IdTokenVerifier(settings, clock)
    try:
        yield _Issuer(url, key, clock), verifier
    finally:
        verifier.close()
        server.shutdown()
        thread.join()
        server.server_close()


def _verify(verifier: IdTokenVerifier, token: str, *, nonce: str = "") -> str:
    return asyncio.run(verifier.verify(token, nonce=nonce)).subject


def test_each_token_has_a_name_and_is_soon_too_old() -> None:
    with _issuing() as (issuer, verifier):
        tokens = [issuer.token(), issuer.token(sub="2")]
        first, again, other = (
            asyncio.run(verifier.verify(token, nonce="")).token_digest for token in (tokens[0], *tokens)
        )
        assert first == again != other
        with pytest.raises(UnauthenticatedError, match="not accepted"):
            _verify(verifier, tokens[0] + "=")  # another spelling
        issuer.clock.advance(601)
        with pytest.raises(UnauthenticatedError, match="older than ten minutes"):
            _verify(verifier, tokens[0])


@pytest.mark.parametrize(
    ("carried", "sent", "accepted"),
    [("n", "n", True), ("n", "", False), ("n", "m", False), (None, "n", False), (None, "", True)],
)
def test_a_token_with_a_nonce_is_good_for_its_own_sign_in_alone(
    carried: str | None, sent: str, accepted: bool
) -> None:
    with _issuing() as (issuer, verifier):
        token = issuer.token(**({} if carried is None else {"nonce": carried}))
        if accepted:
            assert _verify(verifier, token, nonce=sent) == "1"
        else:
            with pytest.raises(UnauthenticatedError, match="another sign-in"):
                _verify(verifier, token, nonce=sent)


@pytest.mark.parametrize(
    ("names_algorithm", "algorithm", "accepted"),
    [(True, "RS256", True), (True, "PS256", False), (True, "RS512", False), (False, "PS256", True)],
)
def test_a_key_signs_by_its_own_algorithm(names_algorithm: bool, algorithm: str, accepted: bool) -> None:
    with _issuing(names_algorithm=names_algorithm) as (issuer, verifier):
        token = issuer.token(algorithm=algorithm)
        if accepted:
            assert _verify(verifier, token) == "1"
        else:
            with pytest.raises(UnauthenticatedError, match="not accepted"):
                _verify(verifier, token)


@pytest.mark.parametrize("subject", ["", "  "])
def test_a_token_about_nobody_is_refused(subject: str) -> None:
    with _issuing() as (issuer, verifier), pytest.raises(UnauthenticatedError):
        _verify(verifier, issuer.token(sub=subject))
