"""Pages of lists."""

from __future__ import annotations

import base64

import pytest

from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.errors import InvalidArgumentError
from resolute_serving.pagination import decode_token, encode_token, is_text, page_size


@pytest.mark.parametrize(("asked", "given"), [(0, 100), (7, 7), (5000, 1000)])
def test_page_sizes_have_a_default_and_a_limit(asked: int, given: int) -> None:
    assert page_size(asked) == given


def test_negative_page_size_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="page_size is -1"):
        page_size(-1)


def test_token_leads_to_the_next_page_of_the_same_question() -> None:
    request = pb2.ListExperimentsRequest(name_contains="digits", page_size=5)
    request.page_token = encode_token(request, 42)
    assert decode_token(request) == 42
    request.page_size = 9
    assert decode_token(request) == 42


def test_token_of_another_question_is_refused() -> None:
    request = pb2.ListExperimentsRequest(name_contains="digits")
    other = pb2.ListExperimentsRequest(name_contains="letters", page_token=encode_token(request, 42))
    with pytest.raises(InvalidArgumentError, match="other filters or another order"):
        decode_token(other)


@pytest.mark.parametrize("token", ["x", "eyJhIjogMX0=", "////"])
def test_made_up_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="begin with the first page"):
        decode_token(pb2.ListExperimentsRequest(page_token=token))


def forged(position: object) -> pb2.ListExperimentsRequest:
    """A request whose token has a position that no page has."""
    request = pb2.ListExperimentsRequest()
    request.page_token = encode_token(request, position)
    return request


@pytest.mark.parametrize("position", [-1, 2**63, 1.5, True, "1", None, [1], {"a": 1}])
def test_a_position_that_no_page_has_is_refused(position: object) -> None:
    with pytest.raises(InvalidArgumentError, match="begin with the first page"):
        decode_token(forged(position))


@pytest.mark.parametrize("text", ["1", "[" * 100_000, "[1,2,3]", "null", "[1" + "0" * 5000 + ",1]"])
def test_a_token_that_is_other_json_is_refused(text: str) -> None:
    token = base64.urlsafe_b64encode(text.encode()).decode()
    with pytest.raises(InvalidArgumentError, match="page_token"):
        decode_token(pb2.ListExperimentsRequest(page_token=token))


@pytest.mark.parametrize(("text", "fine"), [("é", True), ("\0", False), ("\ud800", False)])
def test_text_that_no_database_holds_is_no_position(text: str, fine: bool) -> None:
    assert is_text(text) is fine
