"""Parts of the Core API that may change."""

from __future__ import annotations

import logging
from typing import Any

_log = logging.getLogger("resolute.core")


class ExperimentalCoreContext:
    """Features that may change. Get them as ``Context.experimental``.

    Examples:
        >>> from types import SimpleNamespace
        >>> from resolute import core
        >>> version = SimpleNamespace(name="digits", model_version=3)
        >>> with core.init() as context:
        ...     context.experimental.report_task_using_model_version(version)
    """

    def report_task_using_checkpoint(self, checkpoint: Any) -> None:
        """Notes in the task's log that it uses a checkpoint, such as for inference.

        Args:
            checkpoint: The checkpoint: anything with a ``uuid``.

        Raises:
            TypeError: ``checkpoint`` has no ``uuid``.
        """
        uuid = getattr(checkpoint, "uuid", None)
        if not isinstance(uuid, str):
            raise TypeError(f"a checkpoint with a uuid was expected, not {checkpoint!r}")
        _log.info("this task uses checkpoint %s", uuid)

    def report_task_using_model_version(self, model_version: Any) -> None:
        """Notes in the task's log that it uses a version of a registered model.

        Args:
            model_version: The version: anything with ``model_name`` (or ``name``) and ``model_version``.

        Raises:
            TypeError: It is none.
        """
        version = getattr(model_version, "model_version", None)
        name = getattr(model_version, "model_name", None) or getattr(model_version, "name", None)
        if version is None or name is None:
            raise TypeError(f"a version of a model was expected, not {model_version!r}")
        _log.info("this task uses version %s of model %s", version, name)
