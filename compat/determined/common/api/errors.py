"""Errors of calls to a cluster, under the documented names. Each is one of ``resolute.errors``."""

from resolute.errors import (
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    PermissionDeniedError,
    ResoluteError,
    UnauthenticatedError,
    UnavailableError,
)

BadRequestException = ResoluteError
APIException = ResoluteError
NotFoundException = NotFoundError
EmptyResultException = NotFoundError
MasterNotFoundException = UnavailableError
ForbiddenException = PermissionDeniedError
UnauthenticatedException = UnauthenticatedError
BadResponseException = InternalError
DeleteFailedException = FailedPreconditionError
CorruptTokenCacheException = FailedPreconditionError
CorruptCertificateCacheException = FailedPreconditionError
InvalidCredentialsException = UnauthenticatedError
