"""What stores answer, and that they do not, in the platform's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import urllib3

from resolute.errors import (
    FailedPreconditionError,
    NotFoundError,
    QuotaError,
    ResoluteError,
    UnavailableError,
)

NO_BUCKET = "NoSuchBucket"
"""The code for a bucket that is not there."""
ACCESS_DENIED = "AccessDenied"
"""The code for credentials that do not reach."""
_ABSENT = frozenset({NO_BUCKET, "ContainerNotFound"})
_MISSING = frozenset({"NoSuchKey", "NoSuchUpload", "NoSuchVersion", "NotFound", "BlobNotFound"})
_MISNAMED = frozenset({"InvalidBucketName", "InvalidResourceName", "OutOfRangeInput"})
_SKEWED = "RequestTimeTooSkewed"
_REFUSED = frozenset(
    {
        ACCESS_DENIED,
        "AccountIsDisabled",
        "AccountProblem",
        "AllAccessDisabled",
        "AuthenticationFailed",
        "AuthorizationFailure",
        "AuthorizationHeaderMalformed",
        "AuthorizationPermissionMismatch",
        "ExpiredToken",
        "InsufficientAccountPermissions",
        "InvalidAccessKeyId",
        "InvalidAuthenticationInfo",
        "InvalidToken",
        "KeyBasedAuthenticationNotPermitted",
        "NoAuthenticationInformation",
        "SignatureDoesNotMatch",
    }
)
_FULL = frozenset({"QuotaExceeded", "StorageFull", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"})
_SHOWN = 300


@contextmanager
def transport_errors(place: str) -> Iterator[None]:
    """Turns failures of connections into errors that name the place; those of the platform pass.

    Raises:
        UnavailableError: The store does not answer.
    """
    try:
        yield
    except ResoluteError:
        raise
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnavailableError(f"{place} does not answer ({shortened(error)}); try again") from error


def from_code(place: str, code: str, message: str) -> ResoluteError:
    """Makes an error of a store's own code.

    Args:
        place: Where, beginning with what the store calls it: ``bucket 'weights' of …``.
        code: What the store says for programs.
        message: What it says for people.
    """
    said = f"{code}: {message}"[:_SHOWN] if message else code
    if code in _ABSENT:
        return FailedPreconditionError(
            f"{place} is not there; make the {place.partition(' ')[0]}, or set "
            "RESOLUTE_CHECKPOINTS_CREATE_BUCKETS=true for the checkpoints service, which then makes it"
        )
    if code in _MISSING:
        return NotFoundError(f"{place} has no such object ({said})")
    if code in _MISNAMED:
        return FailedPreconditionError(
            f"{place} has a name that the store takes for none ({said}); name one that is there"
        )
    if code == _SKEWED:
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
    for code in (*_MISSING, *_REFUSED, *_FULL, *_ABSENT, *_MISNAMED, _SKEWED):
        if f"<Code>{code}</Code>" in text:
            return from_code(place, code, "")
    if "Response code: 404" in text:
        return NotFoundError(f"{place} has no such object")
    if "Response code: 403" in text:
        return from_code(place, ACCESS_DENIED, "")
    return UnavailableError(f"{place} gave an answer that is not understood: {text[:_SHOWN]}")


def shortened(error: BaseException) -> str:
    """What an exception says, or its name, not too long for a message."""
    return (str(error) or type(error).__name__)[:_SHOWN]
