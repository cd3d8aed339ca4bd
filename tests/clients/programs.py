"""The programs of clients in other languages, as `make clients` builds them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from support.pages.commands import ROOT

_CLIENTS = ROOT / "clients"


@dataclass(frozen=True)
class Program:
    """A command, and what must be there to run it."""

    command: Sequence[str]
    needs: Sequence[str] = ()
    """Programs on the path."""
    built: str = ""
    """A file below clients/ that the build makes; empty for none."""

    def need(self) -> None:
        """Skips the test where the program is not to be had."""
        for name in self.needs:
            if shutil.which(name) is None:
                pytest.skip(f"{name} is not here: tools/install_clients.sh installs it")
        if self.built and not (_CLIENTS / self.built).exists():
            pytest.skip(f"clients/{self.built} is not built: `make clients` says why")


_NODE = "typescript/dist/"
SCENARIOS = {
    "python": Program([sys.executable, str(_CLIENTS / "python/scenario.py")]),
    "typescript": Program(
        ["node", str(_CLIENTS / _NODE / "examples/scenario.js")],
        ["node"],
        built=f"{_NODE}examples/scenario.js",
    ),
    "go": Program([str(_CLIENTS / "go/bin/scenario")], built="go/bin/scenario"),
    "java": Program([str(_CLIENTS / "java/bin/scenario")], ["java"], built="java/bin/scenario"),
    "curl": Program([str(_CLIENTS / "curl/scenario.sh")], ["curl", "jq", "b3sum"]),
}
"""clients/scenario.md in each language."""
_TYPESCRIPT = str(_CLIENTS / _NODE / "test/conformance.js")
CONFORMANCE = {
    "typescript by HTTP": Program(["node", _TYPESCRIPT], ["node"], built=f"{_NODE}test/conformance.js"),
    "typescript by gRPC": Program(
        ["node", _TYPESCRIPT, "grpc"], ["node"], built=f"{_NODE}test/conformance.js"
    ),
    "go": Program([str(_CLIENTS / "go/bin/conformance")], built="go/bin/conformance"),
    "java": Program([str(_CLIENTS / "java/bin/conformance")], ["java"], built="java/bin/conformance"),
}
"""Programs that make the calls that they read."""
