"""Addresses of a Determined master: taken as `det` takes them, and refused by one sentence."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute.imports.master import Master


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("http://master:8080", "http://master:8080"),
        ("https://master/", "https://master"),
        ("HTTPS://Master:8443", "https://Master:8443"),
        ("master", "http://master:8080"),
        ("master:80", "http://master:80"),
        ("10.0.0.5/", "http://10.0.0.5:8080"),
        ("[fd00::5]", "http://[fd00::5]:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("https://proxy.example/determined/", "https://proxy.example/determined"),
    ],
)
def test_an_address_is_taken(address: str, url: str) -> None:
    assert Master(address).address == url


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("", "no host"),
        ("http://", "no host"),
        (":8080", "no host"),
        ("http://:8080", "no host"),
        ("/det", "no host"),
        ("master:port", "Port could not be cast"),
        ("master:99999", "Port out of range"),
        ("http://master:-1", "Port"),
        ("fd00::5", "in brackets"),
        ("fd00::5:8080", "in brackets"),
        ("::1", "in brackets"),
        ("http://[::1", "Invalid IPv6 URL"),
        ("http://[nonsense]:8080", "nonsense"),
        ("ftp://master:8080", "its scheme is ftp"),
        ("file:///etc/passwd", "no host"),
        ("http://master name:8080", "spaces"),
        ("http://master\n:8080", "spaces or control characters"),
        ("http://carol:secret@master:8080", "--as"),
        ("carol:secret@master", "--as"),
        ("http://master:8080/det/experiments/1", "that of a page"),
        ("http://master:8080/api/v1", "that of a page"),
        ("http://master:8080/?x=1", "query"),
        ("http://master:8080#x", "query"),
    ],
)
def test_what_is_no_address_is_refused_by_one_sentence(address: str, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason) as refused:
        Master(address)
    assert "write it as http://HOST:PORT" in str(refused.value)
    assert "secret" not in str(refused.value)
