"""Samples of a space are those of the documented generator, in the documented order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.errors import InvalidArgumentError
from resolute_searcher.methods.base import Sampler
from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.space import (
    Categorical,
    Const,
    DoubleRange,
    Hyperparameter,
    IntRange,
    LogRange,
    Space,
)
from resolute_searcher.spec.violations import Violations

DOCUMENTED = Space(
    {
        "opt": Categorical(("sgd", "adam", "rms")),
        "n": IntRange(1, 10),
        "lr": LogRange(-4.0, -1.0, base=10.0),
        "global_batch_size": Const(32),
        "drop": DoubleRange(0.1, 0.5),
    }
)


def test_samples_identifiers_and_seeds_are_as_documented() -> None:  # as release 0.30 does
    sampler = Sampler(DOCUMENTED, RandomStream(0))
    rows = [
        (created.hparams, created.trial_key, created.trial_seed)
        for created in (sampler.create() for _ in range(3))
    ]

    def hparams(drop: float, lr: float, n: int, opt: str) -> dict[str, Any]:
        return {"drop": drop, "global_batch_size": 32, "lr": lr, "n": n, "opt": opt}

    assert rows == [
        (
            hparams(0.3195254015709299, 0.013981961408994041, 4, "adam"),
            "d3dea19f-1551-49a5-b2d6-666224b70570",
            1277901399,
        ),
        (
            hparams(0.4567092003128319, 0.07780155576901411, 2, "rms"),
            "274aeacf-57a8-4587-aec8-df7a585e6b91",
            1686997841,
        ),
        (
            hparams(0.47023865531706444, 0.00016334587611069497, 10, "sgd"),
            "73082d05-d013-455e-b392-26d5c51e08f5",
            1194674174,
        ),
    ]


@pytest.mark.parametrize("seed", range(50))
def test_sampling_is_reproducible(seed: int) -> None:  # as release 0.30 does
    space = Space(
        {
            "cat": Categorical(tuple(range(7))),
            "const": Const("x"),
            "double": DoubleRange(0.0, 100.0),
            "int": IntRange(0, 100),
            "log": LogRange(-2.0, 2.0),
        }
    )
    first, second = RandomStream(seed), RandomStream(seed)
    assert [space.sample(first) for _ in range(20)] == [space.sample(second) for _ in range(20)]
    assert first.position == second.position


@given(st.permutations(["b", "a", "C", "é", "a10", "a2"]))
def test_the_order_of_names_in_a_config_does_not_matter(names: list[str]) -> None:  # as release 0.30 does
    axis = DoubleRange(0.0, 1.0)
    shuffled = Space({name: Space(dict.fromkeys(names, axis)) for name in names})
    ordered = Space({name: Space(dict.fromkeys(sorted(names), axis)) for name in sorted(names)})
    assert shuffled.sample(RandomStream(1)) == ordered.sample(RandomStream(1))


def test_nested_groups_draw_where_their_name_stands() -> None:  # as release 0.30 does
    x = DoubleRange(0.0, 1.0)
    nested = Space({"a": x, "b": Space({"y": x, "z": x}), "c": x}).sample(RandomStream(5))
    flat = Space({"a": x, "b1": x, "b2": x, "c": x}).sample(RandomStream(5))
    assert nested == {"a": flat["a"], "b": {"y": flat["b1"], "z": flat["b2"]}, "c": flat["c"]}


@pytest.mark.parametrize(
    ("axis", "complaint"),
    [
        (IntRange(3, 3), "minval must be below maxval"),
        (DoubleRange(2.0, 1.0), "minval must be below maxval"),
        (DoubleRange(float("nan"), 1.0), "minval must be below maxval"),
        (DoubleRange(0.0, float("inf")), "both finite"),
        (LogRange(-1.0, 1.0, base=0.0), "base: must be a finite number above zero"),
        (LogRange(-1.0, 400.0, base=10.0), "too large"),
        (IntRange(0, 5, count=0), "count: must be at least 1, not 0"),
        (Categorical(()), "vals: must hold at least one value"),
        (Space({"inner": IntRange(1, 0)}), "hyperparameters.x.inner: minval"),
    ],
)
def test_a_wrong_hyperparameter_is_named_with_what_is_wrong(axis: Hyperparameter, complaint: str) -> None:
    violations = Violations()
    Space({"x": axis, "fine": Const(None)}).check("hyperparameters", violations)
    with pytest.raises(InvalidArgumentError, match=r"hyperparameters\.x") as caught:
        violations.raise_if_any("space")
    assert complaint in str(caught.value)
    assert len(caught.value.violations) == 1
