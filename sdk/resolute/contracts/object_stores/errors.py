"""Errors of object stores as the platform's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import urllib3

from resolute.contracts.object_stores.access import StoreAccess
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


_BUSY = frozenset({408, 425, 429})


@contextmanager
def transport_errors(place: str) -> Iterator[None]:
    """Turns failures of connections into errors that name the place; other errors of the platform pass.

    Raises:
        UnavailableError: The store does not answer.
    """
    try:
        yield
    except ResoluteError:
        raise
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise UnavailableError(f"{place} does not answer ({shortened(error)}); try again") from error


@dataclass(frozen=True, slots=True)
class Answers:
    """Turns the error responses for one bucket into the platform's errors."""

    place: str
    """Where, beginning with what the store calls it: ``bucket 'weights' of …``."""
    access: StoreAccess
    """Who calls, and what to do about credentials and buckets."""

    def from_code(self, code: str, message: str, *, status: int = 0, key: str = "") -> ResoluteError:
        """Makes an error of a store's own code.

        Args:
            code: What the store says for programs.
            message: What it says for people.
            status: Status of the answer, where it is known.
            key: The object that was asked for, if it was one.
        """
        shown = f"{code}: {message}"[:_SHOWN] if message else code
        place, caller = self.place, self.access.caller
        if code in _ABSENT:
            kind = place.partition(" ")[0]
            return FailedPreconditionError(
                f"{place} is not there; make the {kind}, {self.access.bucket_help}"
            )
        if code in _MISSING:
            return NotFoundError(f"{place} has no object {key!r} ({shown})")
        if code in _MISNAMED:
            return FailedPreconditionError(
                f"{place} has a name that the store does not accept ({shown}); correct the name"
            )
        if code == _SKEWED:
            return FailedPreconditionError(
                f"{place} refuses {caller} because their clocks differ ({shown}); set this machine's clock"
            )
        if code in _FULL:
            return QuotaError(f"{place} is full ({shown}); free some space and repeat")
        if code in _REFUSED or (400 <= status < 500 and status not in _BUSY):
            return FailedPreconditionError(
                f"{place} refuses {caller} ({shown}); check its credentials and what they allow"
            )
        return UnavailableError(f"{place} answered {shown or 'with an error'}; try again")

    def from_text(self, answer: object, *, key: str = "") -> ResoluteError:
        """Makes an error of an answer whose form is not known, by the code that is in it."""
        text = str(answer)
        for code in (*_MISSING, *_REFUSED, *_FULL, *_ABSENT, *_MISNAMED, _SKEWED):
            if f"<Code>{code}</Code>" in text:
                return self.from_code(code, "", key=key)
        if "Response code: 404" in text:
            return NotFoundError(f"{self.place} has no object {key!r}")
        if "Response code: 403" in text:
            return self.from_code(ACCESS_DENIED, "")
        return UnavailableError(
            f"{self.place} gave an answer that is not understood: {text[:_SHOWN]}; try again"
        )

    def no_credentials(self, reason: str, remedy: str) -> ResoluteError:
        """Makes the error of credentials that are missing, or of no use.

        Args:
            reason: What is wrong.
            remedy: What to do, unless the caller gives another.
        """
        return FailedPreconditionError(
            f"{self.place} cannot be used by {self.access.caller}: {reason}; "
            f"{self.access.credentials_help or remedy}"
        )


def shortened(error: BaseException) -> str:
    """What an exception says, or its name, not too long for a message."""
    return (str(error) or type(error).__name__)[:_SHOWN]
