from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.domain.checkpoint import File
from resolute_checkpoints.domain.manifest import MAX_FILES, Manifest

SHA = "sha256:" + "0" * 64
STEPS = {"steps_completed": 3}


def test_a_manifest_sums_sizes_and_reads_the_steps() -> None:
    manifest = Manifest.checked([File("b", 2, SHA), File("a/", 0), File("a/x", 5)], {"steps_completed": 7})
    assert manifest.total_size == 7
    assert manifest.steps_completed == 7
    assert [file.path for file in manifest.files] == ["a/", "a/x", "b"]


def test_the_digest_ignores_the_order_of_files_and_of_metadata() -> None:
    first = Manifest.checked([File("a", 1), File("b", 2)], {"steps_completed": 1, "note": "x"})
    second = Manifest.checked([File("b", 2), File("a", 1)], {"note": "x", "steps_completed": 1})
    assert first.digest == second.digest


@pytest.mark.parametrize(
    ("files", "metadata"),
    [
        ([File("a", 2)], STEPS),
        ([File("b", 1)], STEPS),
        ([File("a", 1, SHA)], STEPS),
        ([File("a", 1), File("c", 0)], STEPS),
        ([File("a", 1)], {"steps_completed": 4}),
        ([File("a", 1)], {"steps_completed": 3, "note": None}),
    ],
)
def test_any_other_content_has_another_digest(files: list[File], metadata: dict[str, object]) -> None:
    assert Manifest.checked(files, metadata).digest != Manifest.checked([File("a", 1)], STEPS).digest


def test_old_scripts_say_their_steps_as_latest_batch() -> None:
    assert Manifest.checked([], {"latest_batch": 12}).steps_completed == 12
    assert Manifest.checked([], {"latest_batch": 12, "steps_completed": 13}).steps_completed == 13


@pytest.mark.parametrize("metadata", [{}, {"note": "x"}])
def test_metadata_without_steps_is_refused(metadata: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match='metadata has no "steps_completed"'):
        Manifest.checked([], metadata)


@pytest.mark.parametrize("steps", [-1, 1.5, "3", True, None])
def test_steps_must_be_a_whole_number_from_zero(steps: object) -> None:
    with pytest.raises(InvalidArgumentError, match="steps_completed is"):
        Manifest.checked([], {"steps_completed": steps})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([File("a", -1)], r"files\[0\].size is -1"),
        ([File("a", 1), File("a", 1)], r"files\[1\].path 'a' is there twice"),
        ([File("a", 1), File("a/", 0)], "is there twice"),
        ([File("a/", 3)], "is a directory; it has no size"),
        ([File("a/", 0, SHA)], "is a directory; it has no size"),
        ([File("a", 1, "sha256:12")], r"files\[0\].digest is 'sha256:12'"),
        ([File("a", 1, "sha256:" + "0" * 62)], "has 62 hex digits; a sha256 digest has 64"),
        ([File("a", 1, "SHA256:" + "0" * 64)], "in lower case"),
        ([File("../a", 1)], "climbs out"),
        ([File("a", 2**62), File("b", 2**62)], "sum up to"),
    ],
)
def test_faults_of_files_are_named(files: list[File], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Manifest.checked(files, STEPS)


def test_too_many_files_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="holds at most 250000"):
        Manifest.checked([File(str(n), 0) for n in range(MAX_FILES + 1)], STEPS)


def test_metadata_that_is_too_large_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="put the rest into a file"):
        Manifest.checked([], {"steps_completed": 1, "note": "x" * 300_000})
