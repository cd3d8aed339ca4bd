"""Search methods of other distributions whose author made a mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from resolute.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, QuotaError
from resolute_searcher.planning.preview import preview
from resolute_searcher.spec.search import PluginSpec, SearchSpec

KIND = """
from resolute_searcher.methods.custom import CustomSearch
from resolute_searcher.methods.registry import MethodKind

def build(spec):
    {body}

KIND = MethodKind("{name}", 1, build)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], SearchSpec]:
    """Installs a distribution with one method, and returns a search by it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str, module: str) -> SearchSpec:
        (tmp_path / f"{name}.py").write_text(module)
        about = tmp_path / f"{name}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[resolute.search_methods]\n{name} = {name}:KIND\n")
        return search(name)

    return install


def search(name: str) -> SearchSpec:
    return SearchSpec(PluginSpec(name))


def built_by(body: str, *, name: str) -> str:
    return KIND.format(name=name, body=body)


@pytest.mark.parametrize(
    ("name", "module", "message"),
    [
        ("broken_build", built_by("return spec.nothing", name="broken_build"), "has no attribute 'nothing'"),
        ("broken_import", "import nothing_of_this_name\n", "No module named 'nothing_of_this_name'"),
    ],
)
def test_what_fails_in_a_method_is_told_with_its_traceback(
    installed: Callable[[str, str], SearchSpec], name: str, module: str, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        preview(installed(name, module))
    assert "Traceback" in str(raised.value)
    assert f"{name}.py" in str(raised.value)
    assert "registry.py" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "module", "error", "message"),
    [
        (
            "own_refusal",
            built_by(
                "from resolute.errors import QuotaError; raise QuotaError('too many')", name="own_refusal"
            ),
            QuotaError,
            "^too many$",
        ),
        ("no_kind", "KIND = 5\n", InvalidArgumentError, "is no MethodKind"),
        ("right", built_by("return CustomSearch()", name="right"), FailedPreconditionError, "be previewed"),
    ],
)
def test_what_a_method_refuses_is_told_as_it_is(
    installed: Callable[[str, str], SearchSpec], name: str, module: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        preview(installed(name, module))
    assert "Traceback" not in str(raised.value)


def test_a_method_that_nobody_installed_is_not_found() -> None:
    with pytest.raises(
        NotFoundError, match=r"no search method 'nobodys' is installed here; there are .*random"
    ):
        preview(search("nobodys"))
