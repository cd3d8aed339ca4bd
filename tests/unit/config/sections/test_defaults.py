"""The name and the seed of an experiment that gives none."""

import random
import re
from typing import Any

from resolute_config.layer import Layer
from resolute_config.loading.defaults import SEEDS, pet_name
from resolute_config.loading.parse import parse_config


def nameless(good: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in good.items() if key not in {"name", "reproducibility"}}


def test_an_experiment_without_a_name_gets_one_of_three_words(good: dict[str, Any]) -> None:
    config = parse_config(nameless(good), random=random.Random(1))
    assert re.fullmatch(r"Experiment \([a-z]+-[a-z]+-[a-z]+\)", config.name)
    assert 0 <= config.reproducibility.experiment_seed < SEEDS


def test_equal_sources_of_randomness_give_equal_configs(good: dict[str, Any]) -> None:
    one, same, other = (parse_config(nameless(good), random=random.Random(seed)) for seed in (1, 1, 2))
    assert one == same
    assert one.name != other.name
    assert one.reproducibility != other.reproducibility


def test_the_seed_does_not_depend_on_whether_a_name_is_given(good: dict[str, Any]) -> None:
    drawn = parse_config(nameless(good), random=random.Random(1))
    named = parse_config({**nameless(good), "name": "mine"}, random=random.Random(1))
    assert named.name == "mine"
    assert named.reproducibility == drawn.reproducibility


def test_without_an_injected_source_two_experiments_differ(good: dict[str, Any]) -> None:
    names = {parse_config(nameless(good)).name for _ in range(5)}
    assert len(names) > 1


def test_a_given_name_and_seed_are_kept_and_null_is_not_given(good: dict[str, Any]) -> None:
    assert parse_config(good).name == "digits"
    assert parse_config(good).reproducibility.experiment_seed == 7
    assert parse_config({**good, "name": None, "reproducibility": None}).name.startswith("Experiment (")
    layer = Layer("template", {"name": "templated"})
    assert parse_config(nameless(good), layers=[layer]).name == "templated"


def test_names_are_many() -> None:
    source = random.Random(0)
    assert len({pet_name(source) for _ in range(1000)}) > 990
