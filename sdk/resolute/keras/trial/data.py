"""The data of a trial's loaders, in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from resolute.keras.library import library_class
from resolute.trial_errors import InvalidDataTypeException, InvalidExperimentException

ArrayLike = Any
"""An array, or a list or dict of arrays."""
InputData = Any
"""A ``keras.utils.Sequence``, ``tf.data.Dataset``, ``SequenceAdapter``, ``(x, y)`` or ``(x, y, weights)``."""

_Sequence: Any = library_class("utils", "Sequence")


class SequenceAdapter:
    """The older way to set how a sequence is read. Use ``context.configure_fit``.

    Args:
        sequence: The ``keras.utils.Sequence``.
        use_multiprocessing: No effect: threads are used.
        workers: Number of threads that prefetch batches.
        max_queue_size: Number of prefetched batches.

    Examples:
        >>> import keras
        >>> from resolute.keras import SequenceAdapter
        >>> class Batches(keras.utils.PyDataset):
        ...     def __len__(self):
        ...         return 10
        ...     def __getitem__(self, index):
        ...         return [[index]], [[2 * index]]
        >>> SequenceAdapter(Batches(), workers=4).workers
        4
    """

    def __init__(
        self,
        sequence: Any,
        use_multiprocessing: bool = False,
        workers: int = 1,
        max_queue_size: int = 10,
    ) -> None:
        self.sequence = sequence
        self.use_multiprocessing = use_multiprocessing
        self.workers = workers
        self.max_queue_size = max_queue_size


class _ArrayLikeAdapter(_Sequence):  # type: ignore[misc, unused-ignore]  # without Keras it is Any
    """Arrays as a sequence of batches.

    Args:
        x: Inputs.
        y: Targets.
        batch_size: Records of a batch.
        sample_weights: Weights of the records.
        drop_leftovers: Whether to leave out a last batch of fewer records.

    Raises:
        InvalidDataTypeException: An argument is not an array.
        ValueError: There are fewer records than in a batch, or the arrays have different lengths.
    """

    def __init__(
        self, x: Any, y: Any, batch_size: int, sample_weights: Any = None, drop_leftovers: bool = False
    ) -> None:
        super().__init__()
        parts = [x, y] if sample_weights is None else [x, y, sample_weights]
        lengths = [_length(part) for part in parts]
        if len(set(lengths)) > 1:
            raise ValueError(f"x, y and sample weights must have equally many records, not {lengths}")
        if lengths[0] < batch_size:
            raise ValueError(
                f"Batch size is too large for the input data: a batch of {batch_size}, {lengths[0]} records"
            )
        self._parts = parts
        self._batch_size = batch_size
        whole, rest = divmod(lengths[0], batch_size)
        self._batches = whole if drop_leftovers or not rest else whole + 1

    def __len__(self) -> int:
        return self._batches

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        part = slice(index * self._batch_size, (index + 1) * self._batch_size)
        return tuple(_map(lambda array: array[part], whole) for whole in self._parts)


def adapt_data(data: Any, *, batch_size: int, wrapped: bool) -> Any:
    """Converts the data of a loader method into a sequence or a ``tf.data.Dataset``.

    Args:
        data: What the loader returned.
        batch_size: Records of a batch, for arrays.
        wrapped: Whether ``context.wrap_dataset`` was called.

    Raises:
        InvalidDataTypeException: It is of no kind that can be trained with.
        InvalidExperimentException: It is a dataset that was not wrapped.
    """
    if isinstance(data, SequenceAdapter):
        return data.sequence
    if is_dataset(data):
        if not wrapped:
            raise InvalidExperimentException(
                "Please use either context.wrap_dataset(dataset) or return a sequence or arrays: the "
                "tf.data.Dataset of a loader must be wrapped"
            )
        return data
    if isinstance(data, tuple) and len(data) in {2, 3}:
        return _ArrayLikeAdapter(data[0], data[1], batch_size, *data[2:])
    containers = (tuple, list, dict, str, np.ndarray)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not isinstance(data, containers):
        return data
    raise InvalidDataTypeException(
        type(data),
        "input_data is invalid type: a keras.utils.Sequence, a tf.data.Dataset, (x, y) or (x, y, weights) "
        "was expected",
    )


def is_dataset(data: Any) -> bool:
    """Returns whether data is a ``tf.data.Dataset``."""
    return hasattr(data, "element_spec") and hasattr(data, "repeat")


def length_of(data: Any) -> int | None:
    """Returns the number of batches of one pass; None if unknown."""
    if not is_dataset(data):
        return len(data)
    count = int(data.cardinality())
    return count if count > 0 else None


def first_batch(data: Any) -> Any:
    """Returns the first batch, from whose shapes a model is built."""
    return next(iter(data)) if is_dataset(data) else data[0]


def training_batches(
    data: Any, *, step: int, seed: int, shuffle: bool, workers: int, queue_size: int
) -> Iterator[Any]:
    """Yields batches without end, without the first ``step`` ones.

    The order of a sequence depends on the seed alone. A dataset is read from its beginning up to the step.

    Args:
        data: What ``adapt_data`` returned.
        step: Batches that were trained before.
        seed: Of the order.
        shuffle: Whether a sequence is read in another order in each pass.
        workers: Threads that read ahead where there are more than one.
        queue_size: Batches that they read ahead.
    """
    if is_dataset(data):
        yield from data.repeat().skip(step)
        return
    numbers = _batch_numbers(len(data), step=step, seed=seed, shuffle=shuffle)
    ended = getattr(data, "on_epoch_end", lambda: None)
    if workers <= 1:
        for number, is_last in numbers:
            yield data[number]
            if is_last:
                ended()
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from _read_ahead(data, numbers, pool.submit, queue_size=queue_size, ended=ended)


def _read_ahead(
    data: Any,
    numbers: Iterator[tuple[int, bool]],
    submit: Callable[..., Future[Any]],
    *,
    queue_size: int,
    ended: Callable[[], None],
) -> Iterator[Any]:
    """Prefetches batches within a pass: the sequence may change after each pass."""
    queue: deque[Future[Any]] = deque()
    for number, is_last in numbers:
        queue.append(submit(data.__getitem__, number))
        while queue and (is_last or len(queue) > max(queue_size, 1)):
            yield queue.popleft().result()
        if is_last:
            ended()


def _batch_numbers(length: int, *, step: int, seed: int, shuffle: bool) -> Iterator[tuple[int, bool]]:
    """Yields the index of each batch, and whether the batch is the last of its pass."""
    passes, skipped = divmod(step, length)
    generator = np.random.RandomState(seed & 0xFFFFFFFF)
    order = np.arange(length)
    for _ in range(passes):
        order = generator.permutation(length) if shuffle else order
    while True:
        order = generator.permutation(length) if shuffle else order
        for index in range(skipped, length):
            yield int(order[index]), index == length - 1
        skipped = 0


def weigh_classes(batch: Any, class_weight: Any) -> tuple[Any, Any, Any]:
    """Returns inputs, targets and sample weights of a batch; class weights become sample weights."""
    x, y, weights = (*batch, None, None)[:3] if isinstance(batch, (tuple, list)) else (batch, None, None)
    if class_weight is None:
        return x, y, weights
    targets = np.asarray(y)
    one_hot = targets.ndim > 1 and targets.shape[-1] > 1
    classes = targets.argmax(axis=-1) if one_hot else targets.reshape(len(targets)).astype("int64")
    by_class = np.array([float(class_weight.get(int(number), 1.0)) for number in classes], dtype="float32")
    return x, y, by_class if weights is None else by_class * np.asarray(weights)


def _length(part: Any) -> int:
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, (list, tuple)) and part:
        return _length(part[0])
    if not hasattr(part, "shape"):
        raise InvalidDataTypeException(type(part), "an array, or a list or dict of arrays, was expected")
    return int(part.shape[0])


def _map(function: Callable[[Any], Any], part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _map(function, value) for name, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [_map(function, value) for value in part]
    return function(part)
