"""Imports from a directory, and what is left of them."""

import sys
from pathlib import Path

import pytest

import resolute


def write(directory: Path, value: int) -> Path:
    directory.mkdir()
    (directory / "a_model_def.py").write_text(f"import a_model_helper\nVALUE = {value}\n")
    (directory / "a_model_helper.py").write_text(f"HELP = {value}\n")
    return directory


def test_modules_of_the_same_name_do_not_meet(tmp_path: Path) -> None:
    values = []
    for number in (1, 2):
        with resolute.import_from_path(write(tmp_path / str(number), number)):
            import a_model_def  # type: ignore[import-not-found]

            values.append((a_model_def.VALUE, a_model_def.a_model_helper.HELP))
    assert values == [(1, 1), (2, 2)]
    assert "a_model_def" not in sys.modules
    assert not [path for path in sys.path if str(tmp_path) in path]


def test_modules_that_were_there_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(write(tmp_path / "outer", 1)))
    import a_model_def

    outer = a_model_def
    with resolute.import_from_path(write(tmp_path / "inner", 2)):
        import a_model_def

        assert a_model_def.VALUE == 2
    assert sys.modules["a_model_def"] is outer
    for name in ("a_model_def", "a_model_helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_failing_import_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a_broken_def.py").write_text("import os\nraise ValueError('broken')\n")
    with pytest.raises(ValueError, match="broken"), resolute.import_from_path(tmp_path):
        import a_broken_def  # type: ignore[import-not-found]  # noqa: F401
    assert str(tmp_path) not in sys.path
