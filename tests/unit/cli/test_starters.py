"""How much of what `resolute init` writes is there for Resolute."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

from resolute.cli import init
from resolute.cli.init import STARTERS

ROOT = Path(init.__file__).parent / "starters"
MOST = 8
OURS = frozenset({"resolute", "pytorch", "context", "callback"})


def lines_for_resolute(code: str) -> set[int]:
    """Lines of code that name the package, a module of it, or an object that only it gives."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    names = [token for token in tokens if token.type == tokenize.NAME]
    lightning = {
        i for i, token in enumerate(names) if token.string == "pytorch" and names[i - 1].string == "lightning"
    }
    return {token.start[0] for i, token in enumerate(names) if token.string in OURS and i not in lightning}


@pytest.mark.parametrize("kind", STARTERS)
def test_a_starter_has_few_lines_for_resolute(kind: str) -> None:
    scripts = [path.read_text() for path in (ROOT / kind).glob("*.py")]
    assert 1 < sum(len(lines_for_resolute(script)) for script in scripts) <= MOST


def test_the_page_without_torch_has_few_lines_for_resolute() -> None:
    page = (Path(__file__).parents[3] / "docs/without-torch.md").read_text()
    script = re.search(r"<!-- file: \S+\.py -->\n```python\n(.*?)```", page, re.DOTALL)
    assert script is not None
    assert 1 < len(lines_for_resolute(script[1])) <= MOST
