"""The checkpoint_storage section."""

from typing import Any

import pytest
from unit.config.conftest import Accept, Refuse

from resolute_config.sections.storage import (
    AzureStorage,
    DirectoryStorage,
    GcsStorage,
    S3Storage,
    SharedFsStorage,
)


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (
            {"type": "shared_fs", "host_path": "/data", "storage_path": "runs", "save_trial_best": 0},
            SharedFsStorage(host_path="/data", storage_path="runs", save_trial_best=0),
        ),
        (
            {"type": "shared_fs", "host_path": "/data/", "storage_path": "/data/runs/../x"},
            SharedFsStorage(host_path="/data/", storage_path="/data/runs/../x"),
        ),
        (
            {"type": "shared_fs", "host_path": "/", "storage_path": "/anywhere"},
            SharedFsStorage(host_path="/", storage_path="/anywhere"),
        ),
        (
            {"type": "shared_fs", "host_path": "/data", "checkpoint_path": "old"},
            SharedFsStorage(host_path="/data", storage_path="old"),
        ),
        ({"type": "directory", "container_path": "/c"}, DirectoryStorage(container_path="/c")),
        (
            {
                "type": "s3",
                "bucket": "b",
                "prefix": "a/b",
                "endpoint_url": "http://h:9000",
                "access_key": "k",
            },
            S3Storage(bucket="b", prefix="a/b", endpoint_url="http://h:9000", access_key="k"),
        ),
        ({"type": "gcs", "bucket": "b"}, GcsStorage(bucket="b")),
        (
            {"type": "azure", "container": "c", "account_url": "https://a", "credential": "x"},
            AzureStorage(container="c", account_url="https://a", credential="x"),
        ),
        (
            {"type": "azure", "container": "c", "connection_string": "x"},
            AzureStorage(container="c", connection_string="x"),
        ),
    ],
)
def test_every_storage_is_read(accept: Accept, section: Any, expected: Any) -> None:
    assert accept(checkpoint_storage=section).checkpoint_storage == expected


def test_the_checkpoints_that_are_kept_by_default(accept: Accept) -> None:
    storage = accept().checkpoint_storage
    assert (storage.save_experiment_best, storage.save_trial_best, storage.save_trial_latest) == (0, 1, 1)


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({"type": "shared_fs"}, "host_path: missing; expected an absolute path on the host"),
        ({"type": "shared_fs", "host_path": "data"}, 'host_path: found "data"; expected an absolute path'),
        (
            {"type": "shared_fs", "host_path": "/data", "storage_path": "../x"},
            'storage_path: found "../x"; expected a relative path, or an absolute one, inside host_path',
        ),
        (
            {"type": "shared_fs", "host_path": "/data", "storage_path": "a/../../x"},
            'storage_path: found "a/../../x"; expected a relative path',
        ),
        (
            {"type": "shared_fs", "host_path": "/data", "storage_path": "/database"},
            'storage_path: found "/database"; expected a relative path',
        ),
        (
            {"type": "shared_fs", "host_path": "/d", "propagation": "up"},
            'propagation: found "up"; expected one of',
        ),
        (
            {"type": "shared_fs", "host_path": "/d", "save_trial_best": -1},
            "save_trial_best: found -1; expected 0 or",
        ),
        (
            {"type": "directory", "container_path": "c"},
            'container_path: found "c"; expected an absolute path',
        ),
        ({"type": "s3"}, "bucket: missing; expected the name of the bucket"),
        ({"type": "s3", "bucket": ""}, 'bucket: found ""; expected text that is not empty'),
        (
            {"type": "s3", "bucket": "b", "prefix": "../x"},
            'prefix: found "../x"; expected a prefix without ..',
        ),
        (
            {"type": "gcs", "bucket": "b", "prefix": "a/../.."},
            'prefix: found "a/../.."; expected a prefix without ..',
        ),
        (
            {"type": "azure", "container": "c"},
            "account_url: missing; expected account_url or connection_string",
        ),
        (
            {"type": "azure", "container": "c", "account_url": "u", "connection_string": "s"},
            "account_url: connection_string and account_url are both given; expected exactly one of them",
        ),
        (
            {"type": "azure", "container": "c", "connection_string": "s", "credential": "x"},
            "credential: credential is given without account_url; expected it only together with account_url",
        ),
        ({"type": "ftp"}, 'type: found "ftp"; expected one of shared_fs, directory, s3, gcs, azure'),
        ({"type": "hdfs", "hdfs_url": "u"}, "type: hdfs was removed, use shared_fs on a directory where"),
        ({"type": ["s3"]}, "type: found a list of 1; expected one of"),
        ({"save_trial_best": 2}, "type: missing; expected one of shared_fs, directory, s3, gcs, azure"),
    ],
)
def test_impossible_storage_is_refused(refuse: Refuse, section: Any, fault: str) -> None:
    faults = refuse(checkpoint_storage=section)
    assert len(faults) == 1
    assert faults[0].startswith(f"checkpoint_storage.{fault}")


def test_storage_must_come_from_somewhere(refuse: Refuse) -> None:
    (fault,) = refuse(checkpoint_storage=...)
    assert fault == (
        "checkpoint_storage: missing; expected where to keep checkpoints; "
        "neither the config nor the cluster's defaults say it"
    )


def test_secrets_are_not_shown_in_faults(refuse: Refuse) -> None:
    section = {"type": "s3", "bucket": "b", "secret_key": 12345, "access_key": ["hush"]}
    reason = "found a value that is not shown; expected text (numbers and dates need quotes)"
    assert refuse(checkpoint_storage=section) == [
        f"checkpoint_storage.access_key: {reason}",
        f"checkpoint_storage.secret_key: {reason}",
    ]
    assert "hush" not in str(refuse(environment={"registry_auth": {"password": ["hush"]}}))


def test_secrets_are_masked_on_demand(accept: Accept) -> None:
    config = accept(
        checkpoint_storage={"type": "s3", "bucket": "b", "secret_key": "hush"},
        environment={"registry_auth": {"username": "me", "password": "hush"}},
    )
    masked = config.to_dict(redact=True)
    assert "hush" not in str(masked)
    assert masked["environment"]["registry_auth"]["username"] == "me"
    assert masked["checkpoint_storage"]["access_key"] is None
    assert config.to_dict()["checkpoint_storage"]["secret_key"] == "hush"
