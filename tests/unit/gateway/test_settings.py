"""Settings of the HTTP side."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_gateway.settings import HttpSettings, http_port, serves_http


def read(**variables: str) -> HttpSettings:
    return HttpSettings.from_environment(variables, cluster_id="c", grpc_port=1)


def test_lists_are_read_and_compared_in_lower_case() -> None:
    settings = read(
        RESOLUTE_HTTP_HOSTS="Hub.example, b.example,",
        RESOLUTE_HTTP_ORIGINS="https://Page.example:8443",
        RESOLUTE_GRPC_ADDRESS="grpc.example:443",
    )
    assert settings.hosts == {"hub.example", "b.example"}
    assert settings.origins == {"https://page.example:8443"}
    assert settings.grpc_address == "grpc.example:443"
    assert (read().hosts, read().origins, read().grpc_address) == (frozenset(), frozenset(), "")


@pytest.mark.parametrize(
    "origin", ["*", "page.example", "https://page.example/path", "ftp://a", "https://*.example"]
)
def test_an_origin_that_is_none_is_named(origin: str) -> None:
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_HTTP_ORIGINS"):
        read(RESOLUTE_HTTP_ORIGINS=origin)


def test_the_url_of_browsers_may_have_a_path_and_no_more() -> None:
    assert read(RESOLUTE_HTTP_URL="https://hub.example/resolute/").url == "https://hub.example/resolute"
    assert read().url == ""
    for wrong in ("hub.example", "https://", "ftp://hub.example", "https://hub.example/?a=b"):
        with pytest.raises(InvalidArgumentError, match="RESOLUTE_HTTP_URL"):
            read(RESOLUTE_HTTP_URL=wrong)


def test_the_port_is_a_number() -> None:
    assert (http_port({}), http_port({"RESOLUTE_HTTP_PORT": "8087"})) == (0, 8087)
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_HTTP_PORT is '65536'"):
        http_port({"RESOLUTE_HTTP_PORT": "65536"})


def test_http_is_served_unless_it_is_switched_off() -> None:
    assert [serves_http({"RESOLUTE_NO_HTTP": text}) for text in ("", "0", "1")] == [True, True, False]
    assert serves_http({})
