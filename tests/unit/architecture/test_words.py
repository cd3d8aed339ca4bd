"""Words that a newcomer had to learn first do not come back: code and prose use the field's words instead.

A word enters a list in the commit that replaces its last use. Wire names, stored values and keys of documents
are not checked, because released ones stay.
"""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
THIS = Path(__file__).resolve()

IDENTIFIERS = {
    "cautions": "warnings",
    "foreign fields": "unsupported fields",
    "keeper": "shim",
    "last word": "termination message",
    "remains": "leftovers, leftover containers",
    "remnant": "leftover container",
    "salvage": "orphan upload",
    "sight": "node check",
    "verdict": "status, result, decision",
    "verdicts": "statuses, results, decisions",
}
"""Words of names in Python, in lower case and singly spaced, with what is used instead."""

PRODUCT_IDENTIFIERS = {
    "heard": "the name of what was received",
    "nobody": "the name of what is absent",
    "patience": "timeout",
    "said": "output, message",
    "told": "the name of what was sent or reported",
}
"""The same outside of tests and benchmarks, whose names are sentences."""

NAMES = {
    "Diary": "recorder",
    "Life": "session",
    "Moment": "Timing",
    "Told": "what it records",
}
"""Whole names in Python whose words are plain English elsewhere, with what is used instead."""

PROSE = {
    "cautions": "warnings",
    "child of nobody": "detached",
    "comes of it": "is created, descends from it",
    "hangs? on (it|them)": "depends on",
    "keeper": "shim",
}
"""Words of comments, docstrings, messages and pages, with what is used instead."""

PRODUCT_PROSE = {
    "heard": "received",
    "hears": "receives",
    "nobody": "no process, no user, no rank, or what is absent",
    "said": "reported, written, answered, declared",
    "told": "sent, reported, asked, configured",
    "whoever": "the caller, the reader, the waiting task, any process that",
}
"""The same of comments, docstrings and messages in Python outside of tests and benchmarks."""

PRODUCT = {"compat", "engines", "launchers", "sdk", "services", "tools"}
_STORED = {"lease_patience_seconds"}
"""Names in files that runs of other releases read."""
_GENERATED = ("sdk/resolute/api/",)
_STRING = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> str:
    """The words of a name in snake case or camel case, in lower case."""
    return " ".join(part.lower() for part in _PART.findall(name))


def uses(text: str, words: Mapping[str, str]) -> Iterator[str]:
    """The words that a text uses, as ``word: what is used instead``."""
    for word, instead in words.items():
        if re.search(rf"\b{word}\b", text, re.IGNORECASE):
            yield f"{word}: use {instead}"


@cache
def uses_in_name(name: str, *, product: bool) -> tuple[str, ...]:
    """The words that a name uses."""
    whole = [f"{name}: use {NAMES[name]}"] if name in NAMES else []
    identifiers = {**IDENTIFIERS, **PRODUCT_IDENTIFIERS} if product else IDENTIFIERS
    return (*whole, *uses(words_of(name), identifiers))


def uses_in_source(source: str, *, product: bool = True) -> Iterator[tuple[int, str]]:
    """The words that a module of Python uses, each with its line."""
    prose = {**PROSE, **PRODUCT_PROSE} if product else PROSE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.string in _STORED:
            continue
        if token.type == tokenize.NAME:
            found = uses_in_name(token.string, product=product)
        elif token.type == tokenize.COMMENT or (token.type in _STRING and " " in token.string):
            found = tuple(uses(token.string, prose))
        else:
            continue
        yield from ((token.start[0], use) for use in found)


def candidates(suffix: str) -> Iterator[Path]:
    """Files that have one of the words anywhere: few enough to be read."""
    pattern = "|".join(
        word.replace(" ", "[_ ]?")
        for word in (*IDENTIFIERS, *PRODUCT_IDENTIFIERS, *NAMES, *PROSE, *PRODUCT_PROSE)
    )
    listed = subprocess.run(
        ["git", "grep", "-liE", pattern, "--", f"*{suffix}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for name in listed.stdout.splitlines():
        if ROOT / name != THIS and not name.startswith(_GENERATED):
            yield ROOT / name


def test_words_do_not_come_back_in_code() -> None:
    used = [
        f"{path.relative_to(ROOT)}:{line}: {use}"
        for path in candidates(".py")
        for line, use in uses_in_source(path.read_text(), product=path.relative_to(ROOT).parts[0] in PRODUCT)
    ]
    assert used == []


def test_words_do_not_come_back_in_pages() -> None:
    used = [
        f"{path.relative_to(ROOT)}:{number}: {use}"
        for path in candidates(".md")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for use in uses(line, PROSE)
    ]
    assert used == []


def test_words_are_seen_in_names_comments_and_messages() -> None:
    source = 'class FinalVerdict:\n    """All cautions."""\n\nkey = {"verdict": f"no cautions"}  # cautions\n'
    assert [line for line, _ in uses_in_source(source)] == [1, 2, 4, 4]
