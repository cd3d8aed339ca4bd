"""One table of errors for both sides of the wire."""

from __future__ import annotations

import grpc
import pytest

from resolute import errors
from resolute.api.common.v1 import error_pb2
from resolute.contracts.calls.error_status import from_status
from resolute_serving.server.calls import to_status


def test_every_reason_of_the_contract_has_one_class_and_every_class_a_reason() -> None:
    names = error_pb2.ErrorReason.keys()
    declared = {name.removeprefix("ERROR_REASON_") for name in names} - {"UNSPECIFIED"}
    assert set(errors.BY_REASON) == declared
    assert len(set(errors.BY_REASON.values())) == len(errors.BY_REASON)


@pytest.mark.parametrize("kind", errors.BY_REASON.values(), ids=lambda kind: kind.__name__)
def test_error_comes_through_the_wire_as_itself(kind: type[errors.ResoluteError]) -> None:
    raised = kind(
        "trial 3 is gone; list the trials",
        resource="trial 3",
        violations=[errors.Violation("a.b", "found 1; expected 2")],
        metadata={"from_state": "ACTIVE"},
    )
    status = to_status(raised)
    received = from_status(status, status_name=raised.status)
    assert type(received) is kind
    assert str(received) == str(raised)
    assert received.resource == "trial 3"
    assert received.violations == raised.violations
    assert received.metadata == {"from_state": "ACTIVE"}
    assert status.code == grpc.StatusCode[raised.status].value[0]


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_status_without_a_reason_has_a_class_too(code: grpc.StatusCode) -> None:
    assert issubclass(errors.BY_STATUS[code.name], errors.ResoluteError)
