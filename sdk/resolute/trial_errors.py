"""What training scripts raise and catch, under the names that the documented API gives them."""

from __future__ import annotations

from resolute.errors import NotFoundError


class InvalidHP(Exception):  # noqa: N818 - the documented name
    """Raise it when these hyperparameters make no sense: the trial ends and the search continues without it.

    Args:
        msg: Why, for people.

    Raises:
        TypeError: ``msg`` is no text.
    """

    def __init__(self, msg: str = "...") -> None:
        if not isinstance(msg, str):
            raise TypeError(f"InvalidHP takes a text as its reason, not a {type(msg).__name__}: {msg!r}")
        super().__init__(msg)
        self.msg = msg


class InvalidExperimentException(BaseException):
    """The experiment is set up in a way that no restart can cure."""


class InvalidDataTypeException(Exception):  # noqa: N818 - the documented name
    """A data loader, or what it yields, is of a kind that cannot be used."""


class InvalidConfigurationException(Exception):  # noqa: N818 - the documented name
    """The experiment's config is wrong."""


class InvalidModelException(Exception):  # noqa: N818 - the documented name
    """The model is of a kind that cannot be used."""


class InvalidCheckpointException(Exception):  # noqa: N818 - the documented name
    """The checkpoint's files are not what the loader expects."""


class InternalException(Exception):  # noqa: N818 - the documented name
    """Something was asked for at a time when it is not known."""


class CheckpointNotFound(NotFoundError):  # noqa: N818 - the documented name
    """There is no such checkpoint, or its files are gone."""


class CheckpointStateException(Exception):  # noqa: N818 - the documented name
    """The checkpoint is in a state that does not allow what was asked."""


class NoDirectStorageAccess(Exception):  # noqa: N818 - the documented name
    """The store of a checkpoint cannot be reached from here."""


class WorkerError(Exception):
    """A worker of a distributed trial failed."""


class WorkerFinishedGracefully(Exception):  # noqa: N818 - the documented name
    """A worker of a distributed trial ended by itself; no failure."""


class SkipWorkloadException(Exception):  # noqa: N818 - the documented name
    """The rest of the present work is to be left out."""


class StopLoadingImplementation(Exception):  # noqa: N818 - the documented name
    """The code of a model was loaded far enough."""
