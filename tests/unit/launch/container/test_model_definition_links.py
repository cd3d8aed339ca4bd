"""Links beside the code of a run: what they replace, and what they never touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_launch.container.model_definition import link


def test_a_link_takes_the_place_of_what_the_code_has_there(tmp_path: Path) -> None:
    work, mounted = tmp_path / "work", tmp_path / "mounted"
    (work / "data/set").mkdir(parents=True)
    (work / "data/set/old").write_text("of the code")
    (work / "file").write_text("of the code")
    mounted.mkdir()
    (mounted / "kept").write_text("of the host")
    for _ in range(2):
        link(work, {"data/set": str(mounted), "file": str(mounted), "new/place": str(mounted)})
        for name in ("data/set", "file", "new/place"):
            assert (work / name / "kept").read_text() == "of the host"
    assert [path.name for path in mounted.iterdir()] == ["kept"]


@pytest.mark.parametrize("by", ["a link of the code", "another link"])
def test_nothing_is_removed_where_a_link_leads(tmp_path: Path, by: str) -> None:
    work, mounted = tmp_path / "work", tmp_path / "mounted"
    work.mkdir()
    (mounted / "set").mkdir(parents=True)
    (mounted / "set/kept").write_text("of the host")
    links = {"data/set": "/elsewhere"}
    if by == "another link":
        links = {"data": str(mounted), **links}
    else:
        (work / "data").symlink_to(mounted)
    with pytest.raises(InvalidArgumentError, match="data/set lies outside of the working directory"):
        link(work, links)
    assert (mounted / "set/kept").read_text() == "of the host"
