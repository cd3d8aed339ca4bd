"""Which places a config may name for checkpoints, and which a script may."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_checkpoints.blobs.factory import StoreFactory
from resolute_checkpoints.blobs.roots import EVERY_BUCKET, Roots
from resolute_checkpoints.domain.checkpoint import BucketStorage, DirectoryStorage, Provider

MINIO = "http://minio:9000"


def directory(path: Path) -> DirectoryStorage:
    return DirectoryStorage(str(path))


def test_no_directory_outside_of_the_listed_roots_is_used(tmp_path: Path) -> None:
    allowed, own = tmp_path / "allowed", tmp_path / "own"
    allowed.mkdir()
    (allowed / "escape").symlink_to(tmp_path)
    stores = StoreFactory(roots=Roots(directories=(allowed,), own=own))
    for inside in (allowed, allowed / "team", own, own / "team"):
        stores.open(directory(inside), listed=True)
        stores.open(directory(inside))
    for outside in (tmp_path, tmp_path / "allowed-not", allowed / "escape" / "x"):
        with pytest.raises(PermissionDeniedError, match=rf"below {allowed}, {own};.*CHECKPOINTS_ROOTS"):
            stores.open(directory(outside))
        with pytest.raises(PermissionDeniedError, match="the storage of its experiment's config"):
            stores.open(directory(outside), listed=True)


def test_without_a_list_a_config_names_any_directory_but_the_cluster_s_and_a_script_only_own_ones(
    tmp_path: Path,
) -> None:
    own = tmp_path / "home" / "checkpoints"
    stores = StoreFactory(roots=Roots(own=own, private=tmp_path / "home"))
    for anywhere in (tmp_path, tmp_path / "data", own, own / "team"):
        stores.open(directory(anywhere))
    for private in (tmp_path / "home", tmp_path / "home" / "databases"):
        with pytest.raises(PermissionDeniedError, match="keeps its own files"):
            stores.open(directory(private))
    stores.open(directory(own / "team"), listed=True)
    for elsewhere in (tmp_path, tmp_path / "data", tmp_path / "home"):
        with pytest.raises(PermissionDeniedError, match=f"config and directories below {own}, "):
            stores.open(directory(elsewhere), listed=True)


def test_nobody_names_the_directory_of_a_workspace_however_it_leads_there(tmp_path: Path) -> None:
    own = tmp_path / "own"
    theirs, mine = (own / f"workspaces-{uuid.UUID(int=7)}" / name for name in ("1", "2"))
    for path in (theirs, mine):
        path.mkdir(parents=True)
    (own / "link").symlink_to(theirs)
    (mine / "link").symlink_to(theirs)
    stores = StoreFactory(roots=Roots(own=own))
    for place in (theirs, theirs / "team", own / "link", mine / "link", theirs.parent, mine / ".."):
        named = directory(Path(os.path.normpath(place)))
        with pytest.raises(PermissionDeniedError, match="which belongs to a workspace"):
            stores.open(named, listed=True)
        with pytest.raises(PermissionDeniedError, match="name the directory above"):
            stores.admit(named)
    stores.open(directory(mine))
    stores.open(directory(own / "workspaces-of-ours"), listed=True)


def test_where_others_use_the_cluster_a_config_names_directories_below_the_roots_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    own, outside = home / "checkpoints", tmp_path / "data"
    own.mkdir(parents=True)
    outside.mkdir()
    (own / "escape").symlink_to(outside)
    stores = StoreFactory(roots=Roots(own=own, private=home))
    for inside in (own, own / "team"):
        stores.admit(directory(inside), below_roots=True)
    for elsewhere in (outside, tmp_path, own / "escape" / "x", Path("/tmp"), Path("/")):
        stores.admit(directory(elsewhere))
        with pytest.raises(PermissionDeniedError, match=rf"this service allows directories below {own};"):
            stores.admit(directory(elsewhere), below_roots=True)
    listed = StoreFactory(roots=Roots(directories=(Path("/"),), own=own, private=home))
    listed.admit(directory(outside), below_roots=True)
    # A root above the home is none for the cluster's own files.
    with pytest.raises(PermissionDeniedError, match="keeps its own files"):
        listed.admit(directory(home / "databases"), below_roots=True)


@pytest.mark.parametrize(
    ("root", "inside", "outside"),
    [
        (
            "weights",
            [BucketStorage("weights"), BucketStorage("weights", "a/b", MINIO)],
            [BucketStorage("weights2"), BucketStorage("other", "weights")],
        ),
        (
            "s3://weights/team",
            [BucketStorage("weights", "team"), BucketStorage("weights", "team/a")],
            [
                BucketStorage("weights"),
                BucketStorage("weights", "teams"),
                BucketStorage("weights", "team", MINIO),
            ],
        ),
        (
            f"{MINIO}/other",
            [BucketStorage("other", "", MINIO), BucketStorage("other", "x", MINIO)],
            [BucketStorage("other"), BucketStorage("secret", "", MINIO)],
        ),
    ],
)
def test_buckets_lie_below_their_roots_by_each_way_to_write_them(
    root: str, inside: list[BucketStorage], outside: list[BucketStorage]
) -> None:
    stores = StoreFactory(roots=Roots(buckets=(root,)))
    for storage in inside:
        stores.open(storage)
        stores.open(storage, listed=True)
    for storage in outside:
        with pytest.raises(PermissionDeniedError, match=rf"buckets below {root}; .*CHECKPOINTS_BUCKETS"):
            stores.open(storage)


def test_without_a_list_a_config_names_any_bucket_and_a_script_none() -> None:
    stores = StoreFactory()
    stores.open(BucketStorage("weights"))
    with pytest.raises(PermissionDeniedError, match=r"buckets below none, .*RESOLUTE_CHECKPOINTS_BUCKETS"):
        stores.open(BucketStorage("weights"), listed=True)
    StoreFactory(roots=Roots(buckets=(EVERY_BUCKET,))).open(BucketStorage("weights"), listed=True)


def test_the_name_of_a_bucket_cannot_stand_for_an_address() -> None:
    stores = StoreFactory(roots=Roots(buckets=(f"{MINIO}/other",)))
    with pytest.raises(InvalidArgumentError, match="write what follows the name as prefix"):
        stores.open(BucketStorage("http:/", "minio:9000/other", provider=Provider.S3))
