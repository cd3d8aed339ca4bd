"""Pages of lists."""

from __future__ import annotations

import pytest

from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.errors import InvalidArgumentError
from resolute_serving.pagination import decode_token, encode_token, page_size


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
