"""Horovod, loaded once a script has said for which framework.

``hvd`` stands for Horovod's module of that framework::

    from resolute.horovod import hvd

    hvd.require_horovod_type("torch", "the script trains with PyTorch")
    hvd.init()
"""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["hvd"]

_TYPES = ("torch", "tensorflow", "tensorflow.keras")


class _Horovod:
    """Horovod's module, whichever that is when it is used."""

    def __init__(self) -> None:
        self._type = ""
        self._reason = ""

    def require_horovod_type(self, horovod_type: str, reason: str) -> None:
        """Says for which framework Horovod is used.

        Args:
            horovod_type: ``torch``, ``tensorflow`` or ``tensorflow.keras``.
            reason: Why, for the message if somebody else wants another one.

        Raises:
            ValueError: There is no such type, or another one was required before.
        """
        if horovod_type not in _TYPES:
            raise ValueError(f"horovod_type is {horovod_type!r}; one of {', '.join(_TYPES)} was expected")
        if self._type not in {"", horovod_type}:
            raise ValueError(
                f"horovod.{horovod_type} is required because {reason}, but horovod.{self._type} was required "
                f"before because {self._reason}; a process can use one of them only"
            )
        self._type, self._reason = horovod_type, self._reason or reason

    def cross_rank(self) -> int:
        """Returns the index of this machine."""
        return self._across("cross_rank")

    def cross_size(self) -> int:
        """Returns the number of machines."""
        return self._across("cross_size")

    def _across(self, name: str) -> int:
        function = getattr(self._module(), name, None)
        if callable(function):
            return int(function())
        variable = f"HOROVOD_{name.upper()}"
        if variable not in os.environ:
            raise RuntimeError(f"Horovod does not know its {name}, and {variable} is not set")
        return int(os.environ[variable])

    def _module(self) -> Any:
        if not self._type:
            raise RuntimeError(
                "you must call det.horovod.hvd.require_horovod_type() before Horovod is used, to say for "
                "which framework"
            )
        try:
            return importlib.import_module(f"horovod.{self._type}")
        except ImportError as failure:
            raise ImportError(
                f"Horovod could not be imported for {self._type} (needed because {self._reason}): {failure}"
            ) from failure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._module(), name)


hvd: Any = _Horovod()
"""Horovod's module of the framework that was required."""
