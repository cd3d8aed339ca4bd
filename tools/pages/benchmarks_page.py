"""Writes the latest results of the benchmarks into docs/benchmarks.md; ``--check`` compares.

They come from ``benchmarks/latest.json``, which ``make bench`` writes, unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from generated_section import ROOT, GeneratedSection

RESULTS = ROOT / "benchmarks/latest.json"
SECTION = GeneratedSection(
    "docs/benchmarks.md",
    "<!-- results: written by tools/pages/benchmarks_page.py -->",
    "<!-- end of results -->",
    "python tools/pages/benchmarks_page.py",
)
_NONE = "No run of `make bench` has been recorded since results are kept."
_ABSENT = "absent: "
_SKIPPED = "skipped: "

_Result = Mapping[str, Any]


def section(results: Mapping[str, _Result]) -> str:
    """Returns the text of the section."""
    if not results:
        return _NONE
    missed = [name for name, result in results.items() if not result["passed"]]
    summary = f"{len(results)} benchmarks; {len(missed)} of them missed a limit or failed"
    machines = sorted({result["machine"] for result in results.values()})
    rows = [
        f"| [`{name}`](#{_anchor(name)}) | {outcome(result)} | {result['date']} "
        f"| {result['load_before']} | {result['load_after']} | {result['seconds']:.0f} s |"
        for name, result in results.items()
    ]
    table = [
        f"{summary}. Measured on {'; and on '.join(machines)}, with {_versions(list(results.values()))}.",
        "",
        "| benchmark | outcome | date | load before | load at the end | took |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    return "\n".join([*table, *(_details(name, result) for name, result in results.items())])


def outcome(result: _Result) -> str:
    """Says whether a benchmark met its limits, and what it could not be compared with."""
    lines: Sequence[str] = result["output"]
    if any(line.startswith(_SKIPPED) for line in lines):
        return "not run"
    absent = [line.removeprefix(_ABSENT).partition(";")[0] for line in lines if line.startswith(_ABSENT)]
    result_text = "passed" if result["passed"] else "**missed a limit, or failed**"
    return f"{result_text}, without {', '.join(absent)}" if absent else result_text


def _versions(results: Sequence[_Result]) -> str:
    versions: dict[str, set[str]] = {}
    for result in results:
        for package, version in result["versions"].items():
            versions.setdefault(package, set()).add(version)
    return ", ".join(f"{package} {' and '.join(sorted(versions[package]))}" for package in versions)


def _details(name: str, result: _Result) -> str:
    output = "\n".join(result["output"])
    return f"\n### {_heading(name)}\n\n`{result['command']}`\n\n```text\n{output}\n```"


def _heading(name: str) -> str:
    return f"Result of {name}"


def _anchor(name: str) -> str:
    return _heading(name).lower().replace("/", "").replace(" ", "-")


if __name__ == "__main__":
    SECTION.update(section(json.loads(RESULTS.read_text()) if RESULTS.exists() else {}))
