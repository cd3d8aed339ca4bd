from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.contracts.files.file_names import MAX_DEPTH, MAX_PART_BYTES, MAX_PATH_BYTES
from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.paths import check_path


@pytest.mark.parametrize(
    "path",
    [
        "model.pt",
        "a/b/c",
        "directory/",
        ".hidden",
        "...",
        "a b\n\tc",
        "back\\slash",
        "模型/权重.bin",
        "модель",
        "نموذج",
        "e\u0301",
        "👩‍👩‍👧",
        "-rf",
        "C:",
        "x" * MAX_PART_BYTES,
        "/".join(["x" * 199] * 5),
        "/".join(["字" * 80] * 12),
    ],
)
def test_names_of_any_script_are_kept_exactly(path: str) -> None:
    assert check_path(path, field="path") == path


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "is empty"),
        ("/", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("../x", "climbs out"),
        ("a/../../x", "climbs out"),
        ("a/..", "climbs out"),
        ("..", "climbs out"),
        ("../", "climbs out"),
        ("a//b", "simplest form"),
        ("./a", "simplest form"),
        ("a/./b", "simplest form"),
        (".", "simplest form"),
        ("a//", "simplest form"),
        ("a\0b", "NUL"),
        ("x" * 1000, f"more than {MAX_PART_BYTES} bytes"),
        ("字" * 86, f"more than {MAX_PART_BYTES} bytes"),
        ("d/" * 100 + "f", f"more than {MAX_DEPTH} parts"),
        ("/".join(["x" * 100] * 100), f"more than {MAX_PATH_BYTES} bytes"),
    ],
)
def test_paths_that_cannot_be_kept_are_refused(path: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as failure:
        check_path(path, field="files[3].path")
    assert failure.value.violations[0].field == "files[3].path"
    assert len(str(failure.value)) < 600


@given(st.text(max_size=60))
def test_no_path_that_is_taken_leads_out(path: str) -> None:
    try:
        check_path(path, field="path")
    except InvalidArgumentError:
        return
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.removesuffix("/").split("/"))
