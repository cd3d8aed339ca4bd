"""A session and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.api.experiments.v1 import access_service_pb2, access_service_pb2_grpc
from resolute.client.connection.session import Session
from resolute.errors import ClosedConnectionError


@pytest.mark.parametrize("used", [True, False])
def test_a_closed_session_makes_no_calls(tmp_path: Path, used: bool) -> None:
    with Session.find("127.0.0.1:1", environment={"RESOLUTE_HOME": str(tmp_path)}) as session:
        if used:
            session.stub(access_service_pb2_grpc.AccessServiceStub)
    stub = session.stub(access_service_pb2_grpc.AccessServiceStub)
    with pytest.raises(ClosedConnectionError):
        stub.Login(access_service_pb2.LoginRequest(user_name="ada"))
