"""Settings that only the checkpoints service has, read once from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from resolute.errors import InvalidArgumentError
from resolute_checkpoints.blobs.buckets.settings import BucketSettings
from resolute_checkpoints.blobs.roots import BUCKETS_SETTING, DIRECTORIES_SETTING, Roots
from resolute_checkpoints.media.limits import MediaLimits
from resolute_serving.ingestion.byte_limits import ByteLimits

_PREFIX = "RESOLUTE_CHECKPOINTS_"
_MAX_URL_SECONDS = 7 * 86400


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    """Settings of a deployed checkpoints service. Each field names its variable."""

    roots: Roots = field(default_factory=Roots)
    """RESOLUTE_CHECKPOINTS_ROOTS: absolute directories, joined by colons;
    RESOLUTE_CHECKPOINTS_BUCKETS: ``[ADDRESS/]BUCKET[/PREFIX]`` or ``s3://BUCKET[/PREFIX]``, joined by commas.
    Checkpoints lie below them, and scripts may name what is below them."""
    abandon_seconds: float = 3600.0
    """RESOLUTE_CHECKPOINTS_ABANDON_SECONDS: age at which an upload of a dead run is collected."""
    orphan_seconds: float = 7 * 86400.0
    """RESOLUTE_CHECKPOINTS_ORPHAN_SECONDS: age at which an upload that belongs to no trial is collected."""
    collect_seconds: float = 4.0
    """RESOLUTE_CHECKPOINTS_COLLECT_SECONDS: pause between two passes of the collector."""
    buckets: BucketSettings = field(default_factory=BucketSettings)
    """RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY, _S3_SECRET_KEY and _S3_REGION;
    RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS: a file with the key of a service account;
    RESOLUTE_CHECKPOINTS_AZURE_CONNECTION_STRING, or _AZURE_ACCOUNT_URL and _AZURE_ACCOUNT_KEY;
    RESOLUTE_CHECKPOINTS_CREATE_BUCKETS: true or false;
    RESOLUTE_CHECKPOINTS_URL_SECONDS: how long presigned URLs can be used, at most a week."""

    media: MediaLimits = field(default_factory=MediaLimits)
    """RESOLUTE_MEDIA_TRIAL_BYTES, RESOLUTE_MEDIA_WORKSPACE_BYTES: how much trials may log."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> CheckpointSettings:
        """Reads and checks the settings.

        Raises:
            InvalidArgumentError: A variable is wrong; the message names it.
        """
        return cls(
            roots=Roots(
                directories=_directories(variables.get(DIRECTORIES_SETTING, "")),
                buckets=_bucket_roots(variables.get(BUCKETS_SETTING, "")),
            ),
            abandon_seconds=_seconds(variables, "ABANDON_SECONDS", default=cls.abandon_seconds),
            orphan_seconds=_seconds(variables, "ORPHAN_SECONDS", default=cls.orphan_seconds),
            collect_seconds=_seconds(variables, "COLLECT_SECONDS", default=cls.collect_seconds),
            buckets=_buckets(variables),
            media=MediaLimits(bytes=ByteLimits.from_environment(variables, prefix="RESOLUTE_MEDIA")),
        )


def _directories(text: str) -> tuple[Path, ...]:
    roots = tuple(Path(part) for part in text.split(":") if part)
    for root in roots:
        if not root.is_absolute():
            raise InvalidArgumentError(
                f"{DIRECTORIES_SETTING} holds {str(root)!r}; every root must be absolute"
            )
    return roots


def _bucket_roots(text: str) -> tuple[str, ...]:
    return tuple(name.strip().rstrip("/") for name in text.split(",") if name.strip())


def _seconds(variables: Mapping[str, str], name: str, *, default: float) -> float:
    text = variables.get(_PREFIX + name, "")
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise InvalidArgumentError(f"{_PREFIX}{name} is {text!r}; it must be a number of seconds above 0")
    return seconds


def _buckets(variables: Mapping[str, str]) -> BucketSettings:
    access_key, secret_key = _pair(variables, "S3_ACCESS_KEY", "S3_SECRET_KEY")
    account_url, account_key = _pair(variables, "AZURE_ACCOUNT_URL", "AZURE_ACCOUNT_KEY")
    connection_string = variables.get(f"{_PREFIX}AZURE_CONNECTION_STRING", "")
    if connection_string and account_url:
        raise InvalidArgumentError(
            f"{_PREFIX}AZURE_CONNECTION_STRING and {_PREFIX}AZURE_ACCOUNT_URL are both set; set one of them"
        )
    gcs_credentials = variables.get(f"{_PREFIX}GCS_CREDENTIALS", "")
    seconds = _seconds(variables, "URL_SECONDS", default=BucketSettings().url_seconds)
    if not 1 <= seconds <= _MAX_URL_SECONDS:
        raise InvalidArgumentError(
            f"{_PREFIX}URL_SECONDS is {seconds:g}; it must be from 1 to {_MAX_URL_SECONDS}, a week"
        )
    return BucketSettings(
        access_key=access_key,
        secret_key=secret_key,
        region=variables.get(f"{_PREFIX}S3_REGION", ""),
        gcs_credentials=Path(gcs_credentials) if gcs_credentials else None,
        azure_connection_string=connection_string,
        azure_account_url=account_url,
        azure_account_key=account_key,
        create=_flag(variables, "CREATE_BUCKETS"),
        url_seconds=int(seconds),
    )


def _pair(variables: Mapping[str, str], first: str, second: str) -> tuple[str, str]:
    values = variables.get(_PREFIX + first, ""), variables.get(_PREFIX + second, "")
    if bool(values[0]) != bool(values[1]):
        raise InvalidArgumentError(f"set both {_PREFIX}{first} and {_PREFIX}{second}, or none")
    return values


def _flag(variables: Mapping[str, str], name: str) -> bool:
    text = variables.get(_PREFIX + name, "").lower()
    if text not in {"", "true", "false", "1", "0"}:
        raise InvalidArgumentError(f"{_PREFIX}{name} is {text!r}; it must be true or false")
    return text in {"true", "1"}
