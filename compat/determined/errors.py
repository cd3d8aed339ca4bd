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
        message: The fault.
    """

    def __init__(self, config: Mapping[str, Any], message: str) -> None:
        super().__init__(f"Invalid configuration ({config}): {message}")
        self.config = config
        self.message = message


class CheckpointStateException(Exception):  # noqa: N818 - the documented name
    """The checkpoint's state does not allow the requested operation."""


class NoDirectStorageAccess(Exception):  # noqa: N818 - the documented name
    """The store of a checkpoint cannot be reached from this process."""


class ProxiedDownloadFailed(Exception):  # noqa: N818 - the documented name
    """A checkpoint could not be downloaded through the service."""


class MultipleDownloadsFailed(Exception):  # noqa: N818 - the documented name
    """A checkpoint could be downloaded neither from its store nor through the service."""


class EnterpriseOnlyError(Exception):
    """The requested feature is not part of this platform."""


class WorkerError(Exception):
    """A worker of a distributed trial failed."""


class WorkerFinishedGracefully(Exception):  # noqa: N818 - the documented name
    """A worker of a distributed trial ended by itself, without a failure."""


class SkipWorkloadException(Exception):  # noqa: N818 - the documented name
    """The rest of the current workload is skipped."""


class StopLoadingImplementation(Exception):  # noqa: N818 - the documented name
    """The code of a model has been loaded far enough."""
