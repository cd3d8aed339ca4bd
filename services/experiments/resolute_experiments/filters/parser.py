"""Parses filters."""

from __future__ import annotations

import re

from resolute_experiments.filters.syntax import Comparison, Group, Negation, Node, Text, wrong
from resolute_serving.validation import check_length, invalid

MAX_LENGTH = 2000
"""Most characters of a filter."""
MAX_PARTS = 50
"""Most words and comparisons: each takes time of the database."""
MAX_DEPTH = 20

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SPACE = re.compile(r"\s*")
_TOKEN = re.compile(rf'[()]|<=|>=|!=|==|[<>=~:!]|{_QUOTED}|[^\s()"<>=!~:]+')
_VALUE = re.compile(rf'{_QUOTED}|[^\s()"]+')
_OPERATORS = {"=": "=", "==": "=", ":": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "~": "~"}


def parse(text: str) -> Node | None:
    """Reads a filter.

    Args:
        text: Such as ``val_loss < 0.1 and lr > 1e-3 and (state = failed or label = "a b")``. Parts without a
            word between them must all hold, and words without a field are parts of the name.

    Returns:
        What it says; None if it says nothing.

    Raises:
        InvalidArgumentError: It cannot be read, or is too long.
    """
    check_length(text, field="filter", most=MAX_LENGTH)
    if "\0" in text:
        raise invalid("filter", "filter holds a NUL character, which no name has")
    reader = _Reader(text)
    if reader.peek() == "":
        return None
    node = reader.alternatives(0)
    if reader.peek():
        raise wrong('")" has no "(" before it', position=reader.position)
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._parts = 0

    @property
    def position(self) -> int:
        """Where it stands, counted from 1."""
        self._skip()
        return self._at + 1

    def peek(self) -> str:
        """The next token; empty at the end."""
        self._skip()
        if self._at == len(self._text):
            return ""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise wrong('the quote has no end; write " where it ends', position=self.position)
        return match[0]

    def alternatives(self, depth: int) -> Node:
        """Reads parts with "or" between them."""
        if depth > MAX_DEPTH:
            raise wrong(f"parentheses are nested more than {MAX_DEPTH} times", position=self.position)
        found = [self._conditions(depth)]
        while self._takes("or"):
            found.append(self._conditions(depth))
        return found[0] if len(found) == 1 else Group(tuple(found), is_any=True)

    def _conditions(self, depth: int) -> Node:
        found = [self._condition(depth)]
        while True:
            if not self._takes("and") and (self.peek() in {"", ")"} or self._is("or")):
                return found[0] if len(found) == 1 else Group(tuple(found))
            found.append(self._condition(depth))

    def _condition(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise wrong(f'"not" is nested more than {MAX_DEPTH} times', position=self.position)
        if self._takes("not"):
            return Negation(self._condition(depth + 1))
        if self.peek() == "(":
            start = self.position
            self._take("(")
            inner = self.alternatives(depth + 1)
            if self.peek() != ")":
                raise wrong('"(" has no ")" behind it', position=start)
            self._take(")")
            return inner
        return self._part()

    def _part(self) -> Node:
        position, first = self.position, self.peek()
        if not first or first in _OPERATORS or first in "()!":
            found = repr(first) if first else "its end"
            raise wrong(f"a field or a word of a name is missing before {found}", position=position)
        if self._is("and") or self._is("or"):
            raise wrong(
                f'something is missing before "{first}"; quote it where it is a name', position=position
            )
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise wrong(f"a filter has at most {MAX_PARTS} words and comparisons", position=position)
        self._take(first)
        name = _unquoted(first)
        operator = self.peek()
        if operator not in _OPERATORS:
            return Text(name)
        self._take(operator)
        return Comparison(name, _OPERATORS[operator], self._value(name, operator), position)

    def _value(self, name: str, operator: str) -> str:
        self._skip()
        match = _VALUE.match(self._text, self._at)
        if match is None:
            raise wrong(f"a value is missing behind {name} {operator}", position=self.position)
        self._at = match.end()
        return _unquoted(match[0])

    def _is(self, word: str) -> bool:
        return self.peek().lower() == word

    def _takes(self, word: str) -> bool:
        found = self._is(word)
        if found:
            self._take(word)
        return found

    def _take(self, token: str) -> None:
        self._skip()
        self._at += len(token)

    def _skip(self) -> None:
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token.startswith('"') else token
