"""Exceptions of training scripts, under the names of the documented API."""

from __future__ import annotations

from resolute.errors import NotFoundError


class InvalidHP(Exception):  # noqa: N818 - the documented name
    """Raise it when these hyperparameters make no sense: the trial ends and the search continues without it.

    Args:
        msg: Why, for people.

    Raises:
        TypeError: ``msg`` is no text.

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
    """The experiment is set up in a way that no restart can cure."""


class InvalidDataTypeException(InvalidExperimentException):
    """A data loader, or what it yields, is of a kind that cannot be used.

    Args:
        typ: The kind.
        message: What is wrong with it.
    """

    def __init__(self, typ: type, message: str) -> None:
        super().__init__(f"Invalid data type ({typ}): {message}")
        self.typ = typ
        self.message = message


class InvalidModelException(InvalidExperimentException):
    """The model is of a kind that cannot be used."""


class InvalidCheckpointException(RuntimeError):  # noqa: N818 - the documented name
    """The checkpoint's files are not what the loader expects. Torch raises a RuntimeError for it too.

    Args:
        message: What is wrong with them.
    """

    def __init__(self, message: str = "Invalid checkpoint.") -> None:
        super().__init__(message)


class InternalException(Exception):  # noqa: N818 - the documented name
    """Something was asked for at a time when it is not known."""


class CheckpointNotFound(NotFoundError):  # noqa: N818 - the documented name
    """There is no such checkpoint, or its files are gone."""
