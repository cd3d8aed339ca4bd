from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.globs import compile_globs


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("*.pt", ["a.pt", ".pt"], ["d/a.pt", "a.pth", "apt"]),
        ("**/*.pt", ["a.pt", "d/a.pt", "d/e/a.pt"], ["a.txt"]),
        ("**", ["a", "d/a", "d/"], []),
        ("d/**", ["d/a", "d/e/f"], ["da", "e/d/a"]),
        ("d/*", ["d/a", "d/e/"], ["d/e/f", "d"]),
        ("d/**/f", ["d/f", "d/a/f", "d/a/b/f"], ["d/af"]),
        ("?.txt", ["é.txt"], ["ab.txt", "/.txt"]),
        ("[ab].txt", ["a.txt", "b.txt"], ["c.txt"]),
        ("[!ab].txt", ["c.txt"], ["a.txt", "/.txt"]),
        ("[0-9]", ["5"], ["a", "-"]),
        ("a+(b).txt", ["a+(b).txt"], ["aab.txt"]),
        ("模型/*", ["模型/权重"], ["模型"]),
        ("a\nb", ["a\nb"], ["a", "b"]),
        ("[ab", ["[ab"], ["a"]),
    ],
)
def test_a_pattern_matches_whole_paths(glob: str, matching: list[str], others: list[str]) -> None:
    matches = compile_globs([glob])
    assert [path for path in matching if not matches(path)] == []
    assert [path for path in others if matches(path)] == []


def test_several_patterns_add_up() -> None:
    matches = compile_globs(["*.a", "*.b"])
    assert matches("x.a")
    assert matches("x.b")
    assert not matches("x.c")


@pytest.mark.parametrize("glob", ["", "/", "/etc/*", "../x", "a/../b"])
def test_patterns_that_lead_out_are_refused(glob: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"globs\[0\]"):
        compile_globs([glob])


def test_too_many_patterns_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="at most 100"):
        compile_globs(["a"] * 101)
