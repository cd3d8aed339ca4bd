"""The random state of a training in Keras, saved and restored with checkpoints.

The generators of Keras (its layers and ``keras.random``), Python, NumPy and torch continue exactly. The state
of TensorFlow's own stateful operations cannot be read; the shuffling of a ``tf.data.Dataset`` and layers of
``tf_keras`` start again from their seeds.
"""

from __future__ import annotations

import importlib
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np

from resolute.keras.library import backend_of, is_of_legacy


def capture(model: Any) -> dict[str, Any]:
    """Returns the states of the random generators that training uses, and of the model's metrics."""
    state: dict[str, Any] = {"python": random.getstate(), "numpy": np.random.get_state()}
    if is_of_legacy(model):
        return state
    if backend_of(model) == "torch":
        torch: Any = importlib.import_module("torch")
        state["torch"] = torch.random.get_rng_state()
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
    state["keras"] = _to_numpy(_global_generator().state)
    state["layers"] = [_to_numpy(variable) for variable in _stateful_variables(model)]
    return state


def restore(model: Any, state: dict[str, Any]) -> None:
    """Restores the states that ``capture`` returned."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    if is_of_legacy(model):
        return
    if "torch" in state and backend_of(model) == "torch":
        torch: Any = importlib.import_module("torch")
        torch.random.set_rng_state(state["torch"])
        if "cuda" in state and len(state["cuda"]) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(state["cuda"])
    if "keras" in state:
        _global_generator().state.assign(state["keras"])
    variables = _stateful_variables(model)
    if len(variables) == len(state.get("layers", [])):
        for variable, value in zip(variables, state["layers"], strict=True):
            variable.assign(value)


def write(model: Any, path: Path) -> None:
    """Writes the states that ``capture`` returns to a file."""
    path.write_bytes(pickle.dumps(capture(model)))


def read(model: Any, path: Path) -> bool:
    """Restores the states from the file of ``write``; returns False if there is no such file."""
    if not path.exists():
        return False
    restore(model, pickle.loads(path.read_bytes()))  # noqa: S301 - a checkpoint is trusted code
    return True


def seed_all(seed: int, library: Any) -> None:
    """Seeds every random generator that training uses."""
    library.utils.set_random_seed(seed & 0xFFFFFFFF)


def _stateful_variables(model: Any) -> list[Any]:
    """Returns the variables that ``save_weights`` does not save: the states of the layers' generators."""
    weights = {id(variable) for variable in model.weights}
    return [variable for variable in model.variables if id(variable) not in weights]


def _to_numpy(variable: Any) -> Any:
    return np.array(importlib.import_module("keras").ops.convert_to_numpy(variable))


def _global_generator() -> Any:
    """Returns the generator that ``keras.random`` uses without a seed; the first call creates it.

    Its seed is one of Python's random numbers, which are training's.
    """
    outer = random.getstate()
    try:
        return importlib.import_module("keras.src.random.seed_generator").global_seed_generator()
    finally:
        random.setstate(outer)
