"""Reading YAML: the dialect, and what is said of text that cannot be read."""

import datetime as dt
from typing import Any

import pytest

from resolute.contracts.documents.document import MAX_DEPTH, read_document
from resolute.contracts.documents.faults import ConfigError


def read(text: str | bytes) -> dict[str, Any]:
    document = read_document(text)
    assert document.faults == ()
    return document.content


def refusal(source: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        read_document(source)
    (fault,) = caught.value.faults
    return str(fault)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("-1.5E+3", -1500.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("-7", -7),
        ("+7", 7),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("2024-01-01", "2024-01-01"),
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("'1'", "1"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_plain_scalars_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    read_value = read(f"x: {text}")["x"]
    assert read_value == value
    assert type(read_value) is type(value)


def test_json_is_yaml() -> None:
    assert read(b'{"a": [1, 2.5, "x", null, true]}') == {"a": [1, 2.5, "x", None, True]}


def test_escapes_of_json_are_those_of_json() -> None:
    assert read('{"a": "\\ud83d\\ude00 \x7f"}') == {"a": "\U0001f600 \x7f"}


def test_a_duplicate_key_in_json_is_refused_with_its_place() -> None:
    assert "line 1, column 10: not valid YAML: the key 'a' is given twice" in refusal('{"a": 1, "a": 2}')


def test_a_byte_order_mark_is_ignored() -> None:
    assert read("\ufeffa: 1".encode()) == {"a": 1}


def test_an_empty_document_is_an_empty_map() -> None:
    assert read("") == {}
    assert read("# nothing\n---\n") == {}


def test_merge_keys_copy_maps_and_may_be_overridden() -> None:
    assert read("a: &base {x: 1, y: 2}\nb: {<<: *base, y: 3}")["b"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2\nb: 3", "line 2, column 2: not valid YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n b: 2", "line 2, column 3: not valid YAML: mapping values are not allowed here"),
        ("\ta: 1", "line 1, column 1: not valid YAML: found character '\\t' that cannot start any token"),
        (
            "a: 1\nb:\n  c: 2\n  c: 3",
            "line 4, column 3: not valid YAML: the key 'c' is given twice (first in line 3)",
        ),
        ("a: 1\n---\nb: 2", "line 2, column 1: not valid YAML: but found another document"),
        ("a: *nowhere", "line 1, column 4: not valid YAML: found undefined alias 'nowhere'"),
        (
            "a: !!python/object:os.system {}",
            "line 1, column 4: not valid YAML: could not determine a constructor",
        ),
        ("? [1]\n: 2", "line 1, column 3: not valid YAML: found unhashable key"),
        ("a: 'x\x01'", "line 1, column 6: found the character '\\x01'; expected printable text"),
        (b"a: 1\nb: \xff", "line 2, column 4: found a byte that is not UTF-8; expected text in UTF-8"),
        ("a: &a [*a]", "line 1, column 4: an alias refers to what contains it"),
        ("- a", "found a list of 1; expected a map of fields at the top level"),
        ("just text", 'found "just text"; expected a map of fields at the top level'),
    ],
)
def test_unreadable_text_is_refused_with_its_place(text: str | bytes, message: str) -> None:
    assert refusal(text).startswith(message)


@pytest.mark.parametrize("before", ["a: ", '{"a": '])
def test_integers_of_absurdly_many_digits_are_refused(before: str) -> None:
    end = "}" if before.startswith("{") else ""
    message = "not valid YAML: found an integer of more than 100 digits"
    assert refusal(before + "9" * 5000 + end) == f"line 1, column {len(before) + 1}: {message}"


def test_the_source_of_unreadable_text_is_named() -> None:
    with pytest.raises(ConfigError, match=r"line 1, column 5 \(in template 'gpu'\): not valid YAML"):
        read_document("a: [", name="template 'gpu'")


def test_aliases_that_multiply_are_refused_before_they_are_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "values once aliases are expanded" in refusal("\n".join(lines))


def test_text_that_is_nested_beyond_reason_is_refused() -> None:
    assert "nested too deeply" in refusal("a: " + "[" * 5000)
    faults = read_document("a: " + "[" * 100 + "]" * 100).faults
    assert [str(fault) for fault in faults] == [
        f"a[0][0][0]: nested too deeply; expected at most {MAX_DEPTH} levels"
    ]


def test_values_that_json_cannot_hold_are_faults_each_at_its_path() -> None:
    document = read_document(
        {
            "a": {"when": dt.date(2024, 1, 1), "b": [1, float("nan")]},
            "big": 2**63,
            "huge": 2**99999,
            "nul": "a\0b",
            "half": "\ud800",
            "ok": 1,
            "keys": {1: 2},
        }
    )
    assert [str(fault) for fault in document.faults] == [
        "a.when: found a value of type date; expected text, a number, true, false, null, a list or a map",
        "a.b[1]: found NaN; expected a finite number",
        "big: found 9223372036854775808; expected an integer of 64 bits",
        "huge: found an integer of 100000 bits; expected an integer of 64 bits",
        'nul: found "a\\u0000b"; expected text without NUL characters and lone surrogates',
        'half: found "\ud800"; expected text without NUL characters and lone surrogates',
        "keys: found the key 1; expected keys that are text (put them in quotes)",
    ]
    assert document.content["ok"] == 1
    assert document.content["a"] == {"when": None, "b": [1, None]}


def test_the_content_is_a_copy() -> None:
    given = {"data": {"x": [1]}}
    content = read_document(given).content
    content["data"]["x"].append(2)
    assert given == {"data": {"x": [1]}}
