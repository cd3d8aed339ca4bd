"""Exceptions of training scripts, under the names of the documented API."""

from __future__ import annotations

from resolute.errors import NotFoundError


class InvalidHP(Exception):  # noqa: N818 - the documented name
    """Invalid hyperparameters. Raise it to end the trial; the search continues without it.

    Args:
        msg: The reason, for people.

    Raises:
        TypeError: ``msg`` is not text.

    Examples:
        >>> import resolute
        >>> def check(hparams):
        ...     if hparams["width"] % hparams["heads"]:
        ...         raise resolute.InvalidHP(f"{hparams['heads']} heads do not divide {hparams['width']}")
        >>> check({"width": 64, "heads": 3})
        Traceback (most recent call last):
        ...
        resolute.trial_errors.InvalidHP: 3 heads do not divide 64
    """

    def __init__(self, msg: str = "...") -> None:
        if not isinstance(msg, str):
            raise TypeError(f"InvalidHP takes a text as its reason, not a {type(msg).__name__}: {msg!r}")
        super().__init__(msg)
        self.msg = msg


class InvalidExperimentException(BaseException):
    """The experiment has a fault that no restart can remove."""


class InvalidDataTypeException(InvalidExperimentException):
    """The type of a data loader or of its items is not supported.

    Args:
        typ: The type.
        message: The fault.
    """

    def __init__(self, typ: type, message: str) -> None:
        super().__init__(f"Invalid data type ({typ}): {message}")
        self.typ = typ
        self.message = message


class InvalidModelException(InvalidExperimentException):
    """The type of the model is not supported."""


class InvalidCheckpointException(RuntimeError):  # noqa: N818 - the documented name
    """The checkpoint's files do not have the expected form. It is also a RuntimeError, as torch raises.

    Args:
        message: The fault.
    """

    def __init__(self, message: str = "Invalid checkpoint.") -> None:
        super().__init__(message)


class InternalException(Exception):  # noqa: N818 - the documented name
    """A value was requested at a time when it is not known."""


class CheckpointNotFound(NotFoundError):  # noqa: N818 - the documented name
    """The checkpoint does not exist, or its files were deleted."""
