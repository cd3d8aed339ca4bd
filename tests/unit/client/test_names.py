"""The names of ``resolute.client`` are there, and cost nothing before they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import resolute
from resolute import client


def test_every_name_can_be_imported_and_no_other_is_pretended() -> None:
    assert set(client.__all__) <= set(dir(client))
    for name in client.__all__:
        assert getattr(client, name) is not None
    assert resolute.Client is client.Client
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        client.nothing  # noqa: B018


def test_the_package_alone_loads_no_grpc() -> None:
    program = "import resolute.client, sys; sys.exit('grpc' in sys.modules or 'urllib3' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
