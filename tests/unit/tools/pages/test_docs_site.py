"""The site's pages: links stay true, and the references name everything."""

from __future__ import annotations

import asyncio
import re
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "tools"))

from docs_site import archives, build, command_line, config_fields, contract, pages, python_api  # noqa: E402
from support.calls.contract_methods import methods  # noqa: E402

import resolute.core  # noqa: E402

PAGES = {"README.md", "docs/cli.md", "docs/pictures/search.png", "services/logs/README.md"}


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("cli.md#tables", "cli.md#tables"),
        ("../services/logs", "../services/logs/README.md"),
        ("pictures/search.png", "pictures/search.png"),
        ("../protos/", f"{pages.REPOSITORY}/protos"),
        ("../Makefile#L1", f"{pages.REPOSITORY}/Makefile#L1"),
        ("https://example.org/x", "https://example.org/x"),
        ("#here", "#here"),
    ],
)
def test_links_lead_to_pages_or_into_the_repository(link: str, becomes: str) -> None:
    text = pages.linked(f"See [it]({link}).", "docs/access.md", is_page=PAGES.__contains__)
    assert text == f"See [it]({becomes})."


def test_every_command_has_its_section_with_its_options() -> None:
    found = dict(command_line.pages())
    assert "## resolute experiment create" in found["experiment.md"]
    assert "--project_id" in found["experiment.md"]
    assert "(up.md)" in found["README.md"]


def test_every_call_of_every_service_is_told() -> None:
    found = dict(contract.pages())
    for method in methods():
        assert f"\n## {method.name}\n" in found[f"{method.containing_service.name}.md"]


def test_fields_of_a_config_have_their_defaults_and_meanings() -> None:
    page = config_fields.page()
    assert "| `max_restarts` | `5` |" in page
    assert "Whether a smaller value of the metric is better." in page


def test_public_names_of_a_module_are_those_that_it_lists() -> None:
    names = python_api.public_names(resolute.core)
    assert {"Context", "TrainContext", "init"} <= set(names)
    assert "_dummy_init" not in names


def test_every_page_is_in_the_menu_and_in_the_list_of_pages() -> None:
    menu = (ROOT / "tools/docs_site/zensical.toml").read_text()
    listed = (ROOT / "docs/README.md").read_text()
    guides = [page.name for page in sorted((ROOT / "docs").glob("*.md")) if page.name != "README.md"]
    assert [name for name in guides if f'"docs/{name}"' not in menu] == []
    assert [name for name in guides if f"]({name})" not in listed] == []


def test_each_example_can_be_downloaded_from_its_page(tmp_path: Path) -> None:
    copied = pages.copy_pages(tmp_path)
    offered = archives.offer(tmp_path, copied)
    examples = {path.parent.name for path in (ROOT / "examples").glob("*/README.md")}
    assert {f"examples/{name}.tgz" for name in examples} == set(offered)
    for archive in offered:
        page = tmp_path / archive.removesuffix(".tgz") / "README.md"
        (link,) = re.findall(r"\]\(([^)]*\.tgz)\)", page.read_text())
        assert (page.parent / link).resolve() == tmp_path / archive
    with tarfile.open(tmp_path / "examples/core_api.tgz") as files:
        assert "core_api/1_metrics.py" in files.getnames()
        extracted = files.extractfile("core_api/1_metrics.yaml")
        assert extracted is not None
        assert extracted.read() == (ROOT / "examples/core_api/1_metrics.yaml").read_bytes()
    first = (tmp_path / "examples/core_api.tgz").read_bytes()
    archives.offer(tmp_path, ["examples/core_api/README.md"])
    assert (tmp_path / "examples/core_api.tgz").read_bytes() == first


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo 'No issues found'; echo 'Build finished in 1s'", 0),
        ("echo '1 issue found'; exit 1", 1),
        ("echo 'No issues found'; echo 'Build finished in 1s'; exec sleep 600", 0),
        ("echo '1 issue found'; echo 'Build finished in 1s'; exec sleep 600", 1),
    ],
)
def test_a_renderer_that_does_not_end_holds_up_nobody(tmp_path: Path, script: str, code: int) -> None:
    program = tmp_path / "renderer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert asyncio.run(build.render(str(program), tmp_path, end_seconds=0.2)) == code
