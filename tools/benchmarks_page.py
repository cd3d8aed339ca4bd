"""Writes the latest results of the benchmarks into docs/benchmarks.md; ``--check`` compares.

They come from ``benchmarks/latest.json``, which ``make bench`` writes, unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from generated_section import ROOT, GeneratedSection

RESULTS = ROOT / "benchmarks/latest.json"
SECTION = GeneratedSection(
    "docs/benchmarks.md",
    "<!-- results: written by tools/benchmarks_page.py -->",
    "<!-- end of results -->",
    "python tools/benchmarks_page.py",
)
_NONE = "No run of `make bench` has been recorded since results are kept."


def section(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the text of the section."""
    if not results:
        return _NONE
    rows = [
        f"| [`{name}`](#{_anchor(name)}) | {'met' if result['passed'] else '**missed, or failed**'} "
        f"| {result['date']} | {result['load_before']} | {result['load_after']} | {result['seconds']:.0f} s |"
        for name, result in results.items()
    ]
    table = [
        "| benchmark | its limits | date | load before | load at the end | took |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join([*table, *(_details(name, result) for name, result in results.items())])


def _details(name: str, result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{package} {version}" for package, version in result["versions"].items())
    output = "\n".join(result["output"])
    return (
        f"\n### {_heading(name)}\n\n`{result['command']}` on {result['machine']}; {versions}.\n\n"
        f"```text\n{output}\n```"
    )


def _heading(name: str) -> str:
    return f"Result of {name}"


def _anchor(name: str) -> str:
    return _heading(name).lower().replace("/", "").replace(" ", "-")


if __name__ == "__main__":
    SECTION.update(section(json.loads(RESULTS.read_text()) if RESULTS.exists() else {}))
