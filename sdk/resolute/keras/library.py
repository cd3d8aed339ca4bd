"""The Keras library that the script uses: ``keras`` (Keras 3) or ``tf_keras`` (Keras 2)."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

from resolute.contracts.distribution import install_command

LEGACY = "tf_keras"
_LEGACY_VARIABLE = "TF_USE_LEGACY_KERAS"


def find_library() -> Any:
    """Returns ``tf_keras`` if ``TF_USE_LEGACY_KERAS`` is set, or it alone is imported; otherwise ``keras``.

    Raises:
        ImportError: It is not installed, or its backend is not.
    """
    wants_legacy = os.environ.get(_LEGACY_VARIABLE, "").lower() in {"1", "true"}
    name = LEGACY if wants_legacy or (LEGACY in sys.modules and "keras" not in sys.modules) else "keras"
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"resolute.keras needs {name} and its backend ({error}): {install_command('keras')} and "
            "torch or tensorflow, and name the backend by the variable KERAS_BACKEND, such as "
            "KERAS_BACKEND=torch"
        ) from error


def is_legacy(library: Any) -> bool:
    """Returns whether a library, a model or a class belongs to ``tf_keras``."""
    module = getattr(library, "__module__", None) or getattr(library, "__name__", "")
    return str(module).partition(".")[0] == LEGACY


def is_of_legacy(model: Any) -> bool:
    """Returns whether the class of a model derives from ``tf_keras``."""
    return any(is_legacy(base) for base in type(model).__mro__)


def backend_of(model: Any) -> str:
    """Returns the backend that trains a model: ``torch``, ``tensorflow`` or ``jax``."""
    if is_of_legacy(model):
        return "tensorflow"
    return str(importlib.import_module("keras").backend.backend())


class _Missing:
    """A placeholder for a base class of a library that is not installed. Other names can be imported."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        find_library()
        raise ImportError("Keras could not be imported when resolute.keras was: import resolute.keras anew")


def library_class(module: str, name: str) -> Any:
    """Returns a base class of the library; without the library, one that raises when it is instantiated."""
    try:
        return getattr(getattr(find_library(), module), name)
    except ImportError:
        return _Missing


def callback_class(name: str) -> Any:
    """Returns a callback class of the library, as ``library_class`` does."""
    return library_class("callbacks", name)


def check_library(model: Any, callback: Any) -> None:
    """Checks that a callback and a model belong to the same library.

    Raises:
        TypeError: They are not.
    """
    legacy = is_of_legacy(model)
    if legacy != any(is_legacy(base) for base in type(callback).__mro__):
        name, value = (LEGACY, "1") if legacy else ("keras", "0")
        raise TypeError(
            f"the model is of {name}, but {type(callback).__name__} was made for the other library of Keras: "
            f"set the variable {_LEGACY_VARIABLE}={value}, or import {name} before resolute.keras"
        )


def check_ranks(model: Any, *, size: int) -> None:
    """Checks that ``size`` processes can train a model together.

    Raises:
        ValueError: It cannot.
    """
    if size > 1 and not is_of_legacy(model):
        raise ValueError(
            f"Keras 3 on the {backend_of(model)} backend does not train one model with several processes "
            f"(this trial has {size}): use tf_keras, set TF_USE_LEGACY_KERAS=1 and build the model within "
            "the strategy of DistributedContext.from_tf_config(), started by determined.launch.tensorflow; "
            "or train with slots_per_trial: 1; or with PyTorchTrial"
        )
    if size > 1 and model.distribute_strategy.num_replicas_in_sync < size:
        raise ValueError(
            f"the trial has {size} workers, but the model was built within "
            f"{type(model.distribute_strategy).__name__}, which trains each of them alone: build and compile "
            "it within strategy.scope(), where strategy is what DistributedContext.from_tf_config() returned"
        )
