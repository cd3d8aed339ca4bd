"""The ``checkpoint_storage`` section: the storage of checkpoints, and which checkpoints are kept."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Count, Name, Number, Positive, Section, Text
from resolute.contracts.documents.variants import choose

Propagation: TypeAlias = Literal["rprivate", "private", "rshared", "shared", "rslave", "slave"]


def _absolute(path: str) -> str:
    if not posixpath.isabs(path):
        raise reject("an absolute path")
    return path


AbsolutePath: TypeAlias = Annotated[Text, AfterValidator(_absolute)]


def _has_no_parent(prefix: str) -> str:
    if ".." in prefix.split("/"):
        raise reject("a prefix without .. in it: buckets have no parent directories")
    return prefix


Prefix: TypeAlias = Annotated[Text, AfterValidator(_has_no_parent)]


def _names_bucket(name: str) -> str:
    if not _BUCKET.fullmatch(name):
        raise reject(
            "letters, digits, dots, dashes and underscores, without a scheme; prefix says where below"
        )
    return name


_BUCKET = re.compile(r"[A-Za-z0-9][\w.-]{0,254}", re.ASCII)
Bucket: TypeAlias = Annotated[Name, AfterValidator(_names_bucket)]


class KeepEvery(Section):
    """Milestones: the first checkpoint of each trial at or after every multiple. Exactly one field is given.

    Attributes:
        batches: Interval in batches.
        epochs: Interval in epochs; requires ``records_per_epoch`` and a fixed ``global_batch_size``.
        hours: Interval in hours, counted from 1970.
    """

    batches: Positive | None = None
    epochs: Positive | None = None
    hours: Annotated[Number, Field(gt=0)] | None = None

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """Exactly one period."""
        if sum(value is not None for value in given.values()) != 1:
            yield "batches", reject("exactly one of batches, epochs and hours", problem="not one period")


class CommonStorage(Section):
    """The fields of every storage: which checkpoints to keep.

    While trials run, the checkpoints that each can continue from are kept too.

    Attributes:
        type: Kind of storage.
        save_experiment_best: Number of best checkpoints of the whole experiment to keep.
        save_trial_best: Number of best checkpoints of each trial to keep.
        save_trial_latest: Number of latest checkpoints of each trial to keep.
        keep_every: Milestones to keep.
    """

    advice: ClassVar[Mapping[str, str]] = {"user": "it belonged to storage in HDFS, which was removed"}

    type: Text
    save_experiment_best: Count = 0
    save_trial_best: Count = 1
    save_trial_latest: Count = 1
    keep_every: KeepEvery | None = None


class SharedFsStorage(CommonStorage):
    """A directory that every node sees under the same path.

    Attributes:
        host_path: The directory on the host.
        storage_path: Subdirectory for checkpoints; relative, or absolute inside the directory.
        propagation: Propagation of mounts into containers.
        container_path: Field of old configs; has no effect.
        checkpoint_path: Field of old configs; taken as ``storage_path``.
        tensorboard_path: Field of old configs; has no effect.
    """

    type: Literal["shared_fs"] = "shared_fs"
    host_path: AbsolutePath = Field(description="an absolute path on the host")
    storage_path: Text | None = None
    propagation: Propagation = "rprivate"
    container_path: Text | None = None
    checkpoint_path: Text | None = None
    tensorboard_path: Text | None = None

    @field_validator("storage_path")
    @classmethod
    def _below_host_path(cls, storage_path: str | None, info: ValidationInfo) -> str | None:
        host_path = info.data.get("host_path")
        if storage_path is None or host_path is None:
            return storage_path
        root = posixpath.normpath(host_path)
        target = posixpath.normpath(posixpath.join(root, storage_path))
        if posixpath.commonpath([root, target]) != root:
            raise reject(f"a relative path, or an absolute one, inside host_path ({host_path})")
        return storage_path


class DirectoryStorage(CommonStorage):
    """A directory that the user provides: it must exist on every machine on which trials run.

    Attributes:
        container_path: Path of the directory in the trial's container.
    """

    type: Literal["directory"] = "directory"
    container_path: AbsolutePath = Field(description="an absolute path as the trial sees it")


class S3Storage(CommonStorage):
    """A bucket of S3, MinIO or another store with the S3 protocol.

    Attributes:
        bucket: Name of the bucket.
        access_key: Id of the key; without it the usual sources of credentials are used.
        secret_key: Secret of the access key.
        endpoint_url: Address of a store other than Amazon's.
        prefix: What the names of all objects begin with.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"access_key", "secret_key"})

    type: Literal["s3"] = "s3"
    bucket: Bucket = Field(description="the name of the bucket")
    access_key: Text | None = None
    secret_key: Text | None = None
    endpoint_url: Text | None = None
    prefix: Prefix | None = None


class GcsStorage(CommonStorage):
    """A bucket of Google Cloud Storage.

    Attributes:
        bucket: Name of the bucket.
        prefix: What the names of all objects begin with.
    """

    type: Literal["gcs"] = "gcs"
    bucket: Bucket = Field(description="the name of the bucket")
    prefix: Prefix | None = None


def _names_container(name: str) -> str:
    if not _CONTAINER.fullmatch(name):
        raise reject("lower-case letters, digits and dashes, as Azure has it")
    return name


_CONTAINER = re.compile(r"[a-z0-9][a-z0-9-]{0,62}|\$root|\$web")
Container: TypeAlias = Annotated[Name, AfterValidator(_names_container)]


class AzureStorage(CommonStorage):
    """A container of Azure Blob Storage.

    Attributes:
        container: Name of the container.
        connection_string: Connection string with address and credentials.
        account_url: Address of the account, as an alternative to the connection string.
        credential: Credentials for the account's address.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"connection_string", "credential"})

    type: Literal["azure"] = "azure"
    container: Container = Field(description="the name of the container")
    connection_string: Text | None = None
    account_url: Text | None = None
    credential: Text | None = None

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """One address, and credentials only where they belong."""
        if "connection_string" in given and "account_url" in given:
            problem = "connection_string and account_url are both given"
            yield "account_url", reject("exactly one of them", problem=problem)
        elif "connection_string" not in given and "account_url" not in given:
            yield (
                "account_url",
                reject("account_url or connection_string", problem="missing", incomplete=True),
            )
        if "credential" in given and "account_url" not in given:
            problem = "credential is given without account_url"
            yield "credential", reject("it only together with account_url", problem=problem, incomplete=True)


STORAGES: Mapping[str, type[Section]] = {
    "shared_fs": SharedFsStorage,
    "directory": DirectoryStorage,
    "s3": S3Storage,
    "gcs": GcsStorage,
    "azure": AzureStorage,
}

_INSTEAD_OF_HDFS = (
    "shared_fs on a directory where HDFS is mounted, such as {type: shared_fs, host_path: /hdfs}"
)
_REMOVED = {"hdfs": lambda _: _INSTEAD_OF_HDFS}

CheckpointStorage: TypeAlias = Annotated[
    SharedFsStorage | DirectoryStorage | S3Storage | GcsStorage | AzureStorage,
    BeforeValidator(choose("type", common=CommonStorage, variants=STORAGES, removed=_REMOVED)),
]
"""One of the storages, distinguished by ``type``."""
