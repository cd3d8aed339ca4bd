from __future__ import annotations

from pathlib import Path

import pytest

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.roots import Roots
from resolute_checkpoints.settings import CheckpointSettings


def test_without_variables_the_defaults_stand() -> None:
    assert CheckpointSettings.from_environment({}) == CheckpointSettings()


def test_variables_are_read() -> None:
    settings = CheckpointSettings.from_environment(
        {
            "RESOLUTE_CHECKPOINTS_ROOTS": "/a:/b",
            "RESOLUTE_CHECKPOINTS_ABANDON_SECONDS": "10",
            "RESOLUTE_CHECKPOINTS_ORPHAN_SECONDS": "20.5",
            "RESOLUTE_CHECKPOINTS_COLLECT_SECONDS": "1",
        }
    )
    assert settings == CheckpointSettings(
        roots=Roots(directories=(Path("/a"), Path("/b"))),
        abandon_seconds=10,
        orphan_seconds=20.5,
        collect_seconds=1,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROOTS", "relative"),
        ("ABANDON_SECONDS", "soon"),
        ("COLLECT_SECONDS", "0"),
        ("ORPHAN_SECONDS", "nan"),
        ("URL_SECONDS", "700000"),
        ("CREATE_BUCKETS", "perhaps"),
        ("S3_ACCESS_KEY", "alone"),
        ("AZURE_ACCOUNT_URL", "alone"),
        ("AZURE_ACCOUNT_KEY", "alone"),
    ],
)
def test_wrong_variables_are_named(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"RESOLUTE_CHECKPOINTS_{name}"):
        CheckpointSettings.from_environment({f"RESOLUTE_CHECKPOINTS_{name}": value})


def test_buckets_are_read_and_the_secret_is_not_shown() -> None:
    settings = CheckpointSettings.from_environment(
        {
            "RESOLUTE_CHECKPOINTS_BUCKETS": "weights, http://minio:9000/other/, s3://team/a/",
            "RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY": "key",
            "RESOLUTE_CHECKPOINTS_S3_SECRET_KEY": "hush",
            "RESOLUTE_CHECKPOINTS_S3_REGION": "eu-west-1",
            "RESOLUTE_CHECKPOINTS_CREATE_BUCKETS": "true",
            "RESOLUTE_CHECKPOINTS_URL_SECONDS": "60",
        }
    )
    assert settings.buckets == BucketSettings(
        access_key="key",
        secret_key="hush",
        region="eu-west-1",
        create=True,
        url_seconds=60,
    )
    assert settings.roots.buckets == ("weights", "http://minio:9000/other", "s3://team/a")
    assert "hush" not in repr(settings)


def test_credentials_of_other_providers_are_read_and_not_shown() -> None:
    settings = CheckpointSettings.from_environment(
        {
            "RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS": "/etc/account.json",
            "RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_URL": "https://ada.blob.core.windows.net",
            "RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_KEY": "hush",
        }
    )
    assert settings.buckets == BucketSettings(
        gcs_credentials=Path("/etc/account.json"),
        azure_account_url="https://ada.blob.core.windows.net",
        azure_account_key="hush",
    )
    whole = {"RESOLUTE_CHECKPOINTS_AZURE_CONNECTION_STRING": "AccountName=ada;AccountKey=hush"}
    settings = CheckpointSettings.from_environment(whole)
    assert settings.buckets.azure_connection_string == "AccountName=ada;AccountKey=hush"
    assert "hush" not in repr(settings)
    both = {
        **whole,
        "RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_URL": "u",
        "RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_KEY": "k",
    }
    with pytest.raises(InvalidArgumentError, match="both set"):
        CheckpointSettings.from_environment(both)
