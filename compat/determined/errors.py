"""Exceptions of training scripts: ``resolute.trial_errors``, and others that are never raised here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute.trial_errors import *
from resolute.trial_errors import InvalidExperimentException


class InvalidConfigurationException(InvalidExperimentException):
    """The experiment's config is wrong.

    Args:
        config: The config.
        message: What is wrong with it.
    """

    def __init__(self, config: Mapping[str, Any], message: str) -> None:
        super().__init__(f"Invalid configuration ({config}): {message}")
        self.config = config
        self.message = message


class CheckpointStateException(Exception):  # noqa: N818 - the documented name
    """The checkpoint is in a state that does not allow what was asked."""


class NoDirectStorageAccess(Exception):  # noqa: N818 - the documented name
    """The store of a checkpoint cannot be reached from here."""


class ProxiedDownloadFailed(Exception):  # noqa: N818 - the documented name
    """A checkpoint could not be downloaded through the service."""


class MultipleDownloadsFailed(Exception):  # noqa: N818 - the documented name
    """A checkpoint could be downloaded neither from its store nor through the service."""


class EnterpriseOnlyError(Exception):
    """What was asked for is not part of this platform."""


class WorkerError(Exception):
    """A worker of a distributed trial failed."""


class WorkerFinishedGracefully(Exception):  # noqa: N818 - the documented name
    """A worker of a distributed trial ended by itself; no failure."""


class SkipWorkloadException(Exception):  # noqa: N818 - the documented name
    """The rest of the present work is to be left out."""


class StopLoadingImplementation(Exception):  # noqa: N818 - the documented name
    """The code of a model was loaded far enough."""
