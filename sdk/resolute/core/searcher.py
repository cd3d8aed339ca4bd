"""The operations of the search for a trial: each is an absolute length to train to, and a validation."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from resolute.core.distributed import DistributedContext

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("resolute.core")


class Unit(enum.Enum):
    """The unit of lengths.

    Examples:
        >>> from resolute import core
        >>> core.Unit("EPOCHS")
        <Unit.EPOCHS: 'EPOCHS'>
    """

    EPOCHS = "EPOCHS"
    RECORDS = "RECORDS"
    BATCHES = "BATCHES"


class SearcherMode(enum.Enum):
    """The processes that get operations.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     for operation in context.searcher.operations(core.SearcherMode.ChiefOnly):
        ...         operation.report_completed(0.1)
    """

    WorkersAskChief = "WORKERS_ASK_CHIEF"
    """Every process, in step with the others; the chief asks the search."""
    ChiefOnly = "CHEIF_ONLY"
    """Only the chief. The spelling of the value is historical."""


class OperationSource(Protocol):
    """The source of operations for the chief of a trial."""

    def current_length(self) -> int | None:
        """Length of the current operation; None when none is left. May wait for the search."""

    def complete(self, length: int, metric: float) -> None:
        """Says that the operation is done."""

    def report_progress(self, length: float) -> None:
        """Says how far the trial is."""

    def acknowledge_out_of_ops(self) -> None:
        """Says that the trial ends because it has no operation left."""


class LocalOperations:
    """Operations that are known in advance: off cluster, and if validation reports drive the search.

    Args:
        lengths: Lengths of the operations, in order.
        report_progress: Receives the progress of the trial.
    """

    def __init__(
        self, lengths: Sequence[int], *, report_progress: Callable[[float], None] | None = None
    ) -> None:
        self._left = list(lengths)
        self._report_progress = report_progress

    def current_length(self) -> int | None:
        """The length of the first that is not completed; None after the last."""
        return self._left[0] if self._left else None

    def complete(self, length: int, metric: float) -> None:
        """Ends the operation."""
        _log.info("operation of length %d completed with %r", length, metric)
        self._left.pop(0)

    def report_progress(self, length: float) -> None:
        """Passes on how far the trial is."""
        if self._report_progress is not None:
            self._report_progress(length)

    def acknowledge_out_of_ops(self) -> None:
        """Does nothing: off cluster no search waits for the trial."""


class SearcherOperation:
    """Train to an absolute length, validate, then call ``report_completed``.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     for operation in context.searcher.operations():
        ...         operation.report_progress(operation.length)
        ...         operation.report_completed(0.1)
        ...         print(operation.length, operation.completed)
        1 True
    """

    def __init__(self, source: OperationSource, *, length: int, is_chief: bool) -> None:
        self._source = source
        self._length = length
        self._is_chief = is_chief
        self._completed = False

    @property
    def length(self) -> int:
        """Absolute length, which includes what was trained before."""
        return self._length

    @property
    def completed(self) -> bool:
        """Whether ``report_completed`` was called."""
        return self._completed

    def report_progress(self, length: float) -> None:
        """Says how far the trial is.

        Args:
            length: Absolute length reached.

        Raises:
            RuntimeError: Called by a worker, or after completion with another length than the operation's.
        """
        self._check_chief("report_progress")
        if self._completed and length != self._length:
            raise RuntimeError(
                f"op.report_progress({length}) was called after op.report_completed(): "
                f"only {self._length}, the length of the operation, is possible then"
            )
        self._source.report_progress(length)

    def report_completed(self, searcher_metric: Any) -> None:
        """Says that the operation is done.

        Args:
            searcher_metric: Value of the metric that the config names. NaN counts as the worst value.

        Raises:
            RuntimeError: Called by a worker, or a second time.
            TypeError: The metric is no number.
        """
        self._check_chief("report_completed")
        if self._completed:
            raise RuntimeError("op.report_completed() was called before for this operation")
        metric = _to_number(searcher_metric)
        self._source.complete(self._length, metric)
        self._completed = True

    def _check_chief(self, method: str) -> None:
        if not self._is_chief:
            raise RuntimeError(f"op.{method}() may be called by the chief (rank 0) only, not by a worker")


DummySearcherOperation = SearcherOperation
"""Off cluster operations differ in their source only."""


class SearcherContext:
    """Returns operations. Get it as ``Context.searcher``.

    Args:
        dist: The other processes.
        source: The source of operations.
        units: The unit of lengths, if the config gives one.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     for operation in context.searcher.operations():
        ...         print("train to", operation.length)
        ...         operation.report_completed(0.1)
        train to 1
    """

    def __init__(
        self, dist: DistributedContext, *, source: OperationSource, units: Unit | None = None
    ) -> None:
        self._dist = dist
        self._source = source
        self._units = units

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves nothing open."""

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Yields one operation after another, until the search has none left for this trial.

        Args:
            searcher_mode: Which processes iterate.
            auto_ack: Whether the last operation also promises that the trial exits. Without it an exit
                counts as the end of the trial, even if the search has work for it later.

        Raises:
            RuntimeError: The operation before was not completed, or a worker iterates in
                ``SearcherMode.ChiefOnly``.
        """
        mode = SearcherMode(searcher_mode)
        if mode is SearcherMode.ChiefOnly and self._dist.rank:
            raise RuntimeError(
                "searcher.operations() may be called by the chief (rank 0) only in SearcherMode.ChiefOnly"
            )
        return self._iterate(mode, auto_ack=auto_ack)

    def acknowledge_out_of_ops(self) -> None:
        """Says that the trial exits because it has no operation left, so that it can be continued later."""
        self._source.acknowledge_out_of_ops()

    def get_configured_units(self) -> Unit | None:
        """Returns what lengths are counted in, or None if the config gives a bare number."""
        return self._units

    def _iterate(self, mode: SearcherMode, *, auto_ack: bool) -> Iterator[SearcherOperation]:
        is_chief = self._dist.rank == 0
        while (length := self._next_length(mode, auto_ack=auto_ack)) is not None:
            operation = SearcherOperation(self._source, length=length, is_chief=is_chief)
            yield operation
            if is_chief and not operation.completed:
                raise RuntimeError(
                    "you must call op.report_completed() for each operation before the next one"
                )

    def _next_length(self, mode: SearcherMode, *, auto_ack: bool) -> int | None:
        length: int | None = None
        if self._dist.rank == 0:
            length = self._source.current_length()
            if length is None and auto_ack:
                self._source.acknowledge_out_of_ops()
        if mode is SearcherMode.WorkersAskChief:
            length = self._dist.broadcast(length)
        return length


class DummySearcherContext(SearcherContext):
    """The search off cluster: one operation, with the same rules.

    Args:
        dist: The other processes.
        length: Length of the operation.

    Examples:
        >>> from resolute import core
        >>> searcher = core.DummySearcherContext(core.DummyDistributedContext(), length=10)
        >>> for operation in searcher.operations():
        ...     operation.report_completed(0.1)
        ...     print(operation.length)
        10
    """

    def __init__(self, dist: DistributedContext, length: int = 1) -> None:
        super().__init__(dist, source=LocalOperations([length]), units=Unit.EPOCHS)


class SearcherContextMissing(SearcherContext):
    """The search of a config without a length, which has no operations.

    Examples:
        >>> from resolute import core
        >>> core.SearcherContextMissing().operations()
        Traceback (most recent call last):
        ...
        ValueError: there are no searcher operations: ...
    """

    def __init__(self) -> None:
        """Nothing to set up."""

    def operations(
        self, searcher_mode: SearcherMode = SearcherMode.WorkersAskChief, auto_ack: bool = True
    ) -> Iterator[SearcherOperation]:
        """Fails.

        Raises:
            ValueError: Always.
        """
        raise self._error()

    def acknowledge_out_of_ops(self) -> None:
        """Fails.

        Raises:
            ValueError: Always.
        """
        raise self._error()

    def get_configured_units(self) -> Unit | None:
        """Fails.

        Raises:
            ValueError: Always.
        """
        raise self._error()

    @staticmethod
    def _error() -> ValueError:
        return ValueError(
            "there are no searcher operations: the experiment's config has no searcher.max_length; "
            "decide in the script how long to train, or add the field"
        )


def _to_number(metric: Any) -> float:
    try:
        return float(metric.item() if hasattr(metric, "item") else metric)
    except (TypeError, ValueError) as failure:
        raise TypeError(f"the searcher's metric must be a number, not {metric!r}") from failure


def units_of(searcher: dict[str, Any]) -> Unit | None:
    """Returns what lengths are counted in by the section ``searcher`` of a config.

    Args:
        searcher: The section.

    Returns:
        The ``unit`` of a custom search, or the one key of ``max_length`` (or of ``length_per_round`` in older
        configs); None for a bare number.
    """
    unit = searcher.get("unit")
    if isinstance(unit, str):
        return Unit(unit.upper())
    for name in ("max_length", "length_per_round"):
        length = searcher.get(name)
        if isinstance(length, dict) and len(length) == 1:
            return Unit(next(iter(length)).upper())
    return None


def max_length_of(searcher: dict[str, Any]) -> int | None:
    """Returns the number in ``max_length`` of the section ``searcher`` of a config, or None without one."""
    length = searcher.get("max_length")
    if isinstance(length, dict):
        length = next(iter(length.values()), None)
    return length if isinstance(length, int) and not isinstance(length, bool) else None
