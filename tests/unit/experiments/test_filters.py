"""The language of filters: what is read, and what is refused with its place and the remedy."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_experiments.filters.experiments import Asking, condition_of, names_archived
from resolute_experiments.filters.parser import MAX_DEPTH, MAX_LENGTH, MAX_PARTS, parse
from resolute_experiments.filters.syntax import Comparison, Group, Negation, Text

ASKING = Asking(caller="ada", dialect="sqlite", now=1_000_000.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("  ", None),
        ("digits", Text("digits")),
        ('"and or"', Text("and or")),
        ("val_loss<0.1", Comparison("val_loss", "<", "0.1", 1)),
        ("  state:failed", Comparison("state", "=", "failed", 3)),
        ('label = "a b" ', Comparison("label", "=", "a b", 1)),
        (r'name ~ "a \" b\\"', Comparison("name", "~", 'a " b\\', 1)),
        ("created >= 2026-01-31T14:03", Comparison("created", ">=", "2026-01-31T14:03", 1)),
        ("NOT a", Negation(Text("a"))),
        ("a b", Group((Text("a"), Text("b")))),
        ("a AND b", Group((Text("a"), Text("b")))),
        ("a b or c", Group((Group((Text("a"), Text("b"))), Text("c")), is_any=True)),
        ("a (b or c)", Group((Text("a"), Group((Text("b"), Text("c")), is_any=True)))),
        ("android", Text("android")),
        ("lr!=1e-3", Comparison("lr", "!=", "1e-3", 1)),
    ],
)
def test_a_filter_is_read(text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a and", "character 6: a field or a word of a name is missing before its end"),
        ("or a", 'something is missing before "or"'),
        ("(a", r'character 1: "\(" has no "\)" behind it'),
        ("a)", r'character 2: "\)" has no "\(" before it'),
        ("lr <", "character 5: a value is missing behind lr <"),
        ("< 3", "character 1: a field or a word of a name is missing before '<'"),
        ('name = "a', "quote has no end|value is missing"),
        ('a "b', "character 3: the quote has no end"),
        ("a\0", "NUL"),
        ("a" * (MAX_LENGTH + 1), f"{MAX_LENGTH} are allowed"),
        ("a " * (MAX_PARTS + 1), f"at most {MAX_PARTS} words"),
        ("(" * 200 + "a" + ")" * 200, f"nested more than {MAX_DEPTH} times"),
        ("not " * 200 + "a", f"nested more than {MAX_DEPTH} times"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        parse(text)
    assert caught.value.violations[0].field == "filter"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state = burning", "character 1: state: compare it by = or != with one of running, active"),
        ("state < failed", "compare it by = or !="),
        ("progress = half", "number such as 0.1"),
        ("created > soon", "two hours ago"),
        ("owner > ada", "text is compared by"),
        ("archived = perhaps", "yes, no or any"),
        ("label < 3", "a label is compared by"),
        ("lr < small", "with a number, or by ="),
        ("validation/loss ~ 3", "compare a metric by"),
        ('"a\\"b" < 3', "quotes or backslashes"),
        ("trials = nan", "number such as"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_remedy(text: str, message: str) -> None:
    node = parse(text)
    assert node is not None
    with pytest.raises(InvalidArgumentError, match=message):
        condition_of(node, ASKING)


def test_a_filter_says_whether_archived_experiments_are_wanted() -> None:
    assert [
        names_archived(parse(text)) for text in ("a", "", "not (a or archived = yes)", "x archived:any")
    ] == [
        False,
        False,
        True,
        True,
    ]
