"""Merging what the ranks of a sharded checkpoint bring."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute.core.checkpoint.shards import (
    MetadataConflictError,
    ResourceConflictError,
    assign_uploads,
    merge_metadata,
    merge_resources,
    merged_metadata,
    uploading_ranks,
)

HERE, THERE = (1, 10), (1, 11)


def test_ranks_with_directories_of_their_own_all_upload() -> None:
    assert uploading_ranks([HERE, THERE], [False, False]) == [0, 1]


def test_of_ranks_that_share_a_directory_only_the_lowest_uploads() -> None:
    assert uploading_ranks([THERE, HERE, HERE, THERE], [False] * 4) == [0, 1]


def test_a_rank_without_a_directory_uploads_nothing() -> None:
    assert uploading_ranks([None, HERE, None], [False, False, True]) == [1]


def test_ranks_with_selectors_upload_their_selections_of_a_shared_directory() -> None:
    assert uploading_ranks([HERE, HERE, HERE], [True, True, False]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("resources", "merged", "conflicts"),
    [
        ([{"f": 1}, {"g": 2}], {"f": 1, "g": 2}, {}),
        ([{"f": 1}, {"f": 2}], {"f": 1}, {"f": [0, 1]}),
        ([{"d/": 0}, {"d/": 0}], {"d/": 0}, {}),
        ([{"x/": 0}, {"x": 5}], {"x/": 0, "x": 5}, {"x": [0, 1]}),
        ([{"d/f": 1}, {"f": 2}], {"d/f": 1, "f": 2}, {}),
        ([{"d/f": 1}, {"d/f/": 0}], {"d/f": 1, "d/f/": 0}, {"d/f": [0, 1]}),
        ([{"d/": 0, "d/f": 1}, {"d/": 0, "d/g": 1}], {"d/": 0, "d/f": 1, "d/g": 1}, {}),
        ([{"f": 1}, {}, {"f": 1}], {"f": 1}, {"f": [0, 2]}),
        ([{"d": 1}, {"d/f": 1}], {"d": 1, "d/f": 1}, {"d": [0, 1]}),
        ([], {}, {}),
    ],
)
def test_files_of_one_name_conflict_and_directories_do_not(
    resources: list[dict[str, int]], merged: dict[str, int], conflicts: dict[str, list[int]]
) -> None:
    assert merge_resources(resources) == (merged, conflicts)


def test_equal_files_of_one_name_are_uploaded_by_the_lowest_rank() -> None:
    resources = [{"own0": 1, "same": 3, "d/": 0}, {"own1": 1, "same": 3, "d/": 0}]

    shares = assign_uploads(resources, [{"same": "aa"}, {"same": "aa"}])

    assert shares == [["d/", "own0", "same"], ["own1"]]


def test_different_files_of_one_name_are_refused_with_their_ranks() -> None:
    with pytest.raises(ResourceConflictError, match=r"files conflicts: same on ranks 0, 1\."):
        assign_uploads([{"same": 3}, {"same": 3}], [{"same": "aa"}, {"same": "bb"}])


def test_a_file_that_is_a_directory_elsewhere_is_refused() -> None:
    with pytest.raises(ResourceConflictError, match="x on ranks 0, 1"):
        assign_uploads([{"x": 3}, {"x/": 0}], [{"x": "aa"}, {}])


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c", "d/", "d/e"]), st.just(1)), max_size=5))
def test_every_path_is_uploaded_exactly_once(resources: list[dict[str, int]]) -> None:
    shares = assign_uploads(resources, [dict.fromkeys(paths, "same") for paths in resources])

    uploaded = [path for share in shares for path in share]
    assert sorted(uploaded) == sorted(merge_resources(resources)[0])
    assert all(set(share) <= set(own) for share, own in zip(shares, resources, strict=True))


@pytest.mark.parametrize(
    ("metadata", "merged", "conflicts"),
    [
        ([{"x": 0}, {"y": 0}], {"x": 0, "y": 0}, {}),
        ([{"x": 0}, {"x": 0}], {"x": 0}, {}),
        ([{"x": 1, "y": 0}, {"x": 0}], {"x": 1, "y": 0}, {"/x": [0, 1]}),
        ([{"x": {"y": 1}}, {"x": {"z": 2}}], {"x": {"y": 1, "z": 2}}, {}),
        ([{"x": {"y": 1}}, {"x": 2}], {"x": {"y": 1}}, {"/x": [0, 1]}),
        ([{"x": 2}, {"x": {"y": 1}}], {"x": 2}, {"/x": [0, 1]}),
        ([{"x": {"y": 1}}, {"x": [2]}], {"x": {"y": 1}}, {"/x": [0, 1]}),
        ([{"x": {"y": 1}}, {"x": {"y": 2}}], {"x": {"y": 1}}, {"/x/y": [0, 1]}),
        ([{"x": {"y": {"z": 1}}}, {"x": {"z": 2}}], {"x": {"y": {"z": 1}, "z": 2}}, {}),
        ([{"x": [1]}, {"x": [1]}], {"x": [1]}, {}),
        ([{"x": [1]}, {"x": [2]}], {"x": [1]}, {"/x": [0, 1]}),
        (
            [
                {"p": 1, "s": {"p": 1, "s": {"p": 1}}},
                {"q": 2, "s": {"q": 2, "s": {"q": 1, "r": 1}}},
                {"r": 3, "s": {"q": 3, "s": {"r": 2, "p": 2}}},
            ],
            {"p": 1, "q": 2, "r": 3, "s": {"p": 1, "q": 2, "s": {"p": 1, "q": 1, "r": 1}}},
            {"/s/q": [1, 2], "/s/s/r": [1, 2], "/s/s/p": [0, 2]},
        ),
        ([None, {"x": 1}, None], {"x": 1}, {}),
        ([{"x": True}, {"x": 1}], {"x": True}, {"/x": [0, 1]}),
        ([{"x": 1}, {"x": 1.0}], {"x": 1}, {}),
    ],
)
def test_metadata_is_united_mapping_by_mapping(
    metadata: list[dict[str, Any] | None], merged: dict[str, Any], conflicts: dict[str, list[int]]
) -> None:
    assert merge_metadata(metadata) == (merged, conflicts)


def test_not_a_number_agrees_with_itself() -> None:
    _, conflicts = merge_metadata([{"loss": float("nan")}, {"loss": float("nan")}])

    assert conflicts == {}


def test_merging_leaves_the_ranks_own_metadata_alone() -> None:
    first: dict[str, Any] = {"x": {"y": 1}}

    merge_metadata([first, {"x": {"z": 2}}])

    assert first == {"x": {"y": 1}}


def test_metadata_conflicts_are_refused_with_keys_and_ranks() -> None:
    with pytest.raises(MetadataConflictError, match=r"metadata conflicts: /x/y on ranks 0, 1\."):
        merged_metadata([{"x": {"y": 1}}, {"x": {"y": 2}}])


def test_metadata_without_conflicts_is_returned() -> None:
    assert merged_metadata([{"steps_completed": 3}, {"steps_completed": 3, "rank": 1}]) == {
        "steps_completed": 3,
        "rank": 1,
    }
