"""``import resolute`` costs little, and gives every module of the reference."""

from __future__ import annotations

import subprocess
import sys

import pytest
from docs_site.python_api import MODULES

import resolute

LAZY = """
import operator, sys
import resolute

assert not {"grpc", "torch"} & set(sys.modules)
for name in sys.argv[1:]:
    try:
        assert operator.attrgetter(name)(resolute).__name__ == f"resolute.{name}"
    except ImportError as failure:  # the library that the module is for is not installed
        assert not (failure.name or "").startswith("resolute"), failure
"""


def test_every_module_of_the_reference_is_an_attribute_that_is_loaded_when_it_is_named() -> None:
    names = [name.removeprefix("resolute.") for name in MODULES if name != "resolute"]
    result = subprocess.run(
        [sys.executable, "-c", LAZY, *names], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'resolute' has no attribute 'nothing'"):
        resolute.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("module", "older", "name"),
    [
        ("client", "Determined", "Client"),
        ("keras", "DeterminedCallback", "ResoluteCallback"),
        ("transformers", "DetCallback", "ResoluteCallback"),
    ],
)
def test_names_of_0_1_0_are_found(module: str, older: str, name: str) -> None:
    library = {"client": "grpc"}.get(module, module)
    pytest.importorskip(library)
    found = getattr(resolute, module)
    assert getattr(found, older) is getattr(found, name)
    assert older not in found.__all__
    with pytest.raises(AttributeError, match=f"'resolute.{module}' has no attribute 'nothing'"):
        found.nothing  # noqa: B018
