"""Configs before they are sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resolute.client.submission.config import config_text, parse_config, read_config, with_overrides
from resolute.errors import InvalidConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E5", 100_000.0),
        ("yes", "yes"),
        ("off", "off"),
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("010", 10),
        ("0x1f", 31),
        ("0o17", 15),
        ("true", True),
        ("~", None),
        ("", None),
        (".5", 0.5),
        ("[1, 2.0, x]", [1, 2.0, "x"]),
        ("{a: 1e2}", {"a": 100.0}),
        ("'1'", "1"),
    ],
)
def test_values_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    parsed = with_overrides({}, [f"key={text}"])["key"]
    assert parsed == value
    assert type(parsed) is type(value)


def test_an_empty_config_is_an_empty_mapping() -> None:
    assert parse_config("# nothing\n") == {}


def test_merge_keys_work() -> None:
    assert parse_config("a: &x {b: 1}\nc: {<<: *x, d: 2}")["c"] == {"b": 1, "d": 2}


def test_a_file_is_sent_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("# why\nname: x\n")
    assert read_config(path) == "# why\nname: x\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1", r"c\.yaml, line 1, column 6: not valid YAML"),
        (b"a: 1\n b: 2", r"c\.yaml, line 2, column 3: not valid YAML: mapping values are not allowed here"),
        (b"a: !!python/object:os.system x", "not valid YAML: could not determine a constructor"),
        (b"- 1", "is a list; a mapping of fields was expected"),
        (b"word", "is a str; a mapping of fields was expected"),
        (b"a: \x01", "not valid YAML"),
        (b"\xff\xfe\xff", "is not text in UTF-8"),
    ],
)
def test_bad_files_are_named_with_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    with pytest.raises(InvalidConfigError, match=message):
        read_config(path)


def test_missing_and_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"cannot read the config .*gone: No such file"):
        read_config(tmp_path / "gone")
    with pytest.raises(InvalidConfigError, match="Is a directory"):
        read_config(tmp_path)


def test_overrides_reach_into_maps_and_make_missing_ones() -> None:
    config = {"searcher": {"name": "single", "max_length": {"batches": 1}}, "resources": None}
    changed = with_overrides(
        config, ["searcher.max_length.batches=5", "resources.slots_per_trial=2", "labels=[a, b]", "name=x=y"]
    )
    assert changed == {
        "searcher": {"name": "single", "max_length": {"batches": 5}},
        "resources": {"slots_per_trial": 2},
        "labels": ["a", "b"],
        "name": "x=y",
    }
    assert config["resources"] is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("name", "'name' sets nothing"),
        ("=1", "'=1' sets nothing"),
        ("a..b=1", "sets nothing"),
        ("searcher.name.x=1", "cannot set searcher.name.x: searcher.name is 'single', which is not a map"),
        ("a={", "the value of a, line 1, column 2: not valid YAML"),
    ],
)
def test_bad_overrides_are_refused(override: str, message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        with_overrides({"searcher": {"name": "single"}}, [override])


def test_a_changed_config_means_the_same_as_its_file() -> None:
    config = parse_config("a: 1e-3\nb: '1e-3'\nc: yes\nd: é\ne: 1.0\nf: 1")
    assert parse_config(config_text(config)) == config
    assert [type(value) for value in parse_config(config_text(config)).values()] == [
        float, str, str, str, float, int,
    ]  # fmt: skip
