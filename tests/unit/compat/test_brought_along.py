"""What came with Determined and its scripts import is in an extra, which the page tells to install."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib") if sys.version_info >= (3, 11) else pytest.importorskip("tomli")
_ROOT = Path(__file__).parents[3]

BROUGHT_ALONG = frozenset(
    [
        "appdirs",
        "azure-storage-blob",
        "boto3",
        "certifi",
        "filelock",
        "gitpython",
        "google-cloud-storage",
        "matplotlib",
        "numpy",
        "packaging",
        "pathspec",
        "psutil",
        "python-dateutil",
        "pytz",
        "pyyaml",
        "pyzmq",
        "requests",
        "ruamel.yaml",
        "tabulate",
        "termcolor",
        "tqdm",
    ]
)
"""Of what its wheels require, without what only its commands import."""
_OF_OTHERS = frozenset(["certifi"])
"""Comes with requests."""


def test_the_extra_has_what_came_with_it() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["determined"] + extras["azure"] + extras["gcs"]
    found = {re.split(r"[\s<>=\[(;]", one, maxsplit=1)[0].lower() for one in wanted}
    assert "resolute-train[azure,gcs]" in extras["determined"]
    assert found >= BROUGHT_ALONG - _OF_OTHERS


def test_the_page_tells_to_install_it() -> None:
    page = (_ROOT / "docs/from-determined.md").read_text()
    assert "pip install '.[workstation,torch,determined]'" in page
