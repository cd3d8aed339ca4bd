from __future__ import annotations

import enum
import errno
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from determined.util import (
    calculate_batch_sizes,
    force_create_symlink,
    humanize_float,
    is_overridden,
    json_encode,
    mask_checkpoint_storage,
    mask_config_dict,
    merge_dicts,
    rmtree_nfs_safe,
)
from resolute.trial_errors import InvalidExperimentException


@pytest.mark.parametrize(("slots", "sizes"), [(0, (10, 10)), (1, (10, 10)), (3, (3, 9)), (5, (2, 10))])
def test_slots_share_a_batch(slots: int, sizes: tuple[int, int]) -> None:
    assert calculate_batch_sizes({"global_batch_size": 10}, slots, "MyTrial") == sizes


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        ({}, "MyTrial needs the hyperparameter global_batch_size"),
        ({"global_batch_size": "8"}, "is '8'; a whole number was expected"),
        ({"global_batch_size": 3}, "is 3, and the trial has 4 slots"),
    ],
)
def test_a_batch_that_cannot_be_shared_is_refused(hparams: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidExperimentException, match=message):
        calculate_batch_sizes(hparams, 4, "MyTrial")


class Parent:
    def method(self) -> None: ...


class Child(Parent):
    def method(self) -> None: ...


def test_a_method_of_a_child_overrides_that_of_its_parent() -> None:
    assert is_overridden(Child().method, Parent)
    assert is_overridden(Child.method, Parent)
    assert not is_overridden(Parent().method, Parent)
    assert not is_overridden(Child().method, Child)


def test_what_json_lacks_is_written_so_that_every_reader_takes_it() -> None:
    class Color(enum.Enum):
        RED = 1

    class Own:
        def __json__(self) -> Any:
            return {"own": float("inf")}

    value = {"a": [float("nan"), -float("inf"), 1.5], "b": np.array([1, 2]), "c": np.float32(0.5)}
    written = json_encode({**value, "d": Color.RED, "e": Own()}, sort_keys=True)
    assert json.loads(written) == {
        "a": ["NaN", "-Infinity", 1.5],
        "b": [1, 2],
        "c": 0.5,
        "d": "RED",
        "e": {"own": "Infinity"},
    }
    with pytest.raises(TypeError):
        json_encode(object())


def test_dicts_merge_all_the_way_down() -> None:
    merged = merge_dicts({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"c": 4}, "d": {"e": 5}})
    assert merged == {"a": {"b": 1, "c": 4}, "d": {"e": 5}}


def test_configs_are_shown_without_their_secrets() -> None:
    storage = {"type": "s3", "bucket": "b", "access_key": "a", "secret_key": "s", "endpoint_url": None}
    masked = {**storage, "access_key": "********", "secret_key": "********"}
    assert mask_checkpoint_storage(storage) == masked
    azure = {"type": "azure", "connection_string": "x", "credential": None}
    assert mask_checkpoint_storage(azure) == {**azure, "connection_string": "********"}
    dataset = {"dataset": {"repo": "r", "token": "t"}}
    config = {
        "name": "n",
        "checkpoint_storage": storage,
        "environment": {"image": "i", "registry_auth": {"username": "u", "password": "p"}},
        "data": {"path": "/d", "secrets": {"key": "k"}},
        "integrations": {"pachyderm": dataset},
    }
    shown = mask_config_dict(config)
    assert shown == {
        "name": "n",
        "checkpoint_storage": masked,
        "environment": {"image": "i", "registry_auth": {"username": "u", "password": "********"}},
        "data": {"path": "/d", "secrets": {"key": "********"}},
        "integrations": {"pachyderm": {"dataset": {"repo": "r", "token": "********"}}},
    }
    assert config["checkpoint_storage"] is storage
    assert dataset["dataset"]["token"] == "t"
    assert mask_config_dict({"data": None, "checkpoint_storage": None}) == {
        "data": None,
        "checkpoint_storage": None,
    }


@pytest.mark.parametrize(
    ("number", "shown"), [(0.012345, 0.0123), (12.345, 12.3), (12345.6, 12346.0), (0, 0)]
)
def test_numbers_are_rounded_for_people(number: float, shown: float) -> None:
    assert humanize_float(number) == shown


def test_a_link_takes_the_place_of_what_has_its_name(tmp_path: Path) -> None:
    for target in ("first", "second"):
        force_create_symlink(target, tmp_path / "link")
        assert (tmp_path / "link").readlink() == Path(target)
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="directory"):
        force_create_symlink("first", tmp_path / "directory")


@pytest.mark.parametrize(("failures", "removed"), [(0, True), (4, True), (5, False)])
def test_a_directory_that_is_not_empty_yet_is_removed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, removed: bool
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").touch()
    failed: list[Path] = []
    remove = shutil.rmtree

    def removing(path: Path) -> None:
        if len(failed) < failures:
            failed.append(path)
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        remove(path)

    monkeypatch.setattr(shutil, "rmtree", removing)
    if removed:
        rmtree_nfs_safe(tmp_path / "folder")
    else:
        with pytest.raises(OSError, match="not empty"):
            rmtree_nfs_safe(tmp_path / "folder")
    assert (tmp_path / "folder").exists() is not removed
    with pytest.raises(FileNotFoundError):
        rmtree_nfs_safe(tmp_path / "nothing")
