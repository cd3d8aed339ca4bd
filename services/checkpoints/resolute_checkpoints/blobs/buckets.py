"""Clients of S3-compatible stores, and what the stores say in the platform's own errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import certifi
import urllib3
from minio import Minio
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    EnvMinioProvider,
    Provider,
    StaticProvider,
)
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    QuotaError,
    ResoluteError,
    UnavailableError,
    Violation,
)

AMAZON = "https://s3.amazonaws.com"
_POOL = 32
_TIMEOUT = urllib3.Timeout(connect=5.0, read=60.0)
_RETRIES = urllib3.Retry(
    total=3, backoff_factor=0.2, status_forcelist=(500, 502, 503, 504), allowed_methods=None
)
_MISSING = frozenset({"NoSuchKey", "NoSuchUpload", "NoSuchVersion", "NotFound"})
_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccountProblem",
        "AllAccessDisabled",
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
    }
)
_FULL = frozenset({"QuotaExceeded", "StorageFull", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"})
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """How the service uses buckets."""

    access_key: str = ""
    """Key id; empty for what the environment, then the credentials file says."""
    secret_key: str = field(default="", repr=False)
    """Secret of the key."""
    region: str = ""
    """Region of the buckets; empty to ask the store."""
    allowed: tuple[str, ...] = ()
    """Buckets that may be used, as ``bucket`` or ``endpoint_url/bucket``; empty allows every bucket."""
    create: bool = False
    """Whether buckets that are not there are made."""
    url_seconds: int = 6 * 3600
    """How long a presigned URL can be used."""


class BucketClient:
    """The client of one store.

    Args:
        settings: How the service uses buckets.
        endpoint_url: Address of the store; empty for Amazon's.
        credentials: Profile of the credentials file; empty for the service's own credentials.

    Raises:
        InvalidArgumentError: The address is not one.
    """

    def __init__(self, settings: BucketSettings, *, endpoint_url: str, credentials: str) -> None:
        url = urlsplit(endpoint_url or AMAZON)
        if url.scheme not in {"http", "https"} or not url.netloc or url.path.strip("/") or url.query:
            name = "storage.bucket.endpoint_url"
            message = f"{name} is {endpoint_url!r}; write it as https://host or http://host:port"
            raise InvalidArgumentError(message, violations=[Violation(name, message)])
        self.known_buckets: set[str] = set()
        """Buckets that were seen there."""
        self.http = urllib3.PoolManager(
            maxsize=_POOL,
            timeout=_TIMEOUT,
            retries=_RETRIES,
            cert_reqs="CERT_REQUIRED",
            ca_certs=os.environ.get("SSL_CERT_FILE") or certifi.where(),
        )
        """Connections to the store, for requests by URL."""
        self.minio = Minio(
            url.netloc,
            secure=url.scheme == "https",
            region=settings.region or None,
            credentials=_provider(settings, profile=credentials),
            http_client=self.http,
        )
        """The library's client on the same connections."""


def _provider(settings: BucketSettings, *, profile: str) -> Provider:
    # A chain remembers what it found; the provider of the file alone reads it for each signature.
    if profile:
        return ChainedProvider([AWSConfigProvider(profile=profile)])
    if settings.access_key:
        return StaticProvider(settings.access_key, settings.secret_key)
    return ChainedProvider([EnvAWSProvider(), EnvMinioProvider(), AWSConfigProvider()])


@contextmanager
def typed_errors(place: str) -> Iterator[None]:
    """Turns what a store answers, or that it does not, into errors that name the place and the remedy.

    Raises:
        FailedPreconditionError: The store refuses the service, or there is no such bucket.
        NotFoundError: There is no such object or upload.
        QuotaError: The store is full.
        UnavailableError: Anything else, which may pass.
    """
    try:
        yield
    except ResoluteError:
        raise
    except S3Error as error:
        raise from_code(place, error.code or "", error.message or "") from error
    except InvalidResponseError as error:
        # A store, or a proxy before it, that does not say that its answer is XML.
        raise from_answer(place, *error.args[:1]) from error
    except ServerError as error:
        raise UnavailableError(f"{place} answered {error.status_code}; try again") from error
    except MinioException as error:
        raise UnavailableError(f"{place} cannot be used: {_shortened(error)}") from error
    except ValueError as error:
        # The chain of credentials found none, or the library finds fault with a name.
        raise FailedPreconditionError(
            f"{place} cannot be used by the checkpoints service: {_shortened(error)}; check the bucket's "
            "name, and set RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY and RESOLUTE_CHECKPOINTS_S3_SECRET_KEY for it"
        ) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnavailableError(f"{place} does not answer ({_shortened(error)}); try again") from error


def from_code(place: str, code: str, message: str) -> ResoluteError:
    """Makes an error of a store's own code."""
    said = f"{code}: {message}"[:_SHOWN] if message else code
    if code == "NoSuchBucket":
        return FailedPreconditionError(
            f"{place} is not there; make the bucket, or set RESOLUTE_CHECKPOINTS_CREATE_BUCKETS=true for the "
            "checkpoints service, which then makes it"
        )
    if code in _MISSING:
        return NotFoundError(f"{place} has no such object ({said})")
    if code == "RequestTimeTooSkewed":
        return FailedPreconditionError(
            f"{place} refuses the service because their clocks differ ({said}); set the clock of this machine"
        )
    if code in _REFUSED:
        return FailedPreconditionError(
            f"{place} refuses the checkpoints service ({said}); check its credentials and what they allow"
        )
    if code in _FULL:
        return QuotaError(f"{place} is full ({said}); free some space and repeat")
    return UnavailableError(f"{place} answered {said}; try again")


def from_answer(place: str, answer: object) -> ResoluteError:
    """Makes an error of an answer whose form is not known, by the code that is in it."""
    text = str(answer)
    for code in (*_MISSING, *_REFUSED, *_FULL, "NoSuchBucket", "RequestTimeTooSkewed"):
        if f"<Code>{code}</Code>" in text:
            return from_code(place, code, "")
    if "Response code: 404" in text:
        return NotFoundError(f"{place} has no such object")
    if "Response code: 403" in text:
        return from_code(place, "AccessDenied", "")
    return UnavailableError(f"{place} gave an answer that is not understood: {text[:_SHOWN]}")


def _shortened(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:_SHOWN]
