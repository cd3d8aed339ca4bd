"""Samples system metrics of the machine during training."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from resolute.core.distributed import DistributedContext
from resolute.core.reporting.reporter import Reporter
from resolute.core.system_metrics import Averages, Samples

_MIN_INTERVAL = 0.1
_log = logging.getLogger("resolute.core")


class Sampler(Protocol):
    """Measures the machine."""

    def sample(self) -> Samples:
        """Returns values by group and dotted name."""

    def close(self) -> None:
        """Releases its resources."""


class ProfilerContext:
    """Reports the use of processor, memory, disk, network and GPUs. Get it as ``Context.profiler``.

    Args:
        dist: The other processes; the first of each machine samples.
        reporter: Receives the samples.
        agent: Name of the machine, with which the metrics are reported.
        open_sampler: Creates a sampler when profiling is switched on.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     context.profiler.on(sampling_interval=1, samples_per_report=10)
        ...     context.profiler.off()
    """

    def __init__(
        self,
        dist: DistributedContext,
        *,
        reporter: Reporter,
        agent: str,
        open_sampler: Callable[[], Sampler],
    ) -> None:
        self._dist = dist
        self._reporter = reporter
        self._agent = agent
        self._open_sampler = open_sampler
        self._thread: _SamplingThread | None = None
        self._reports = 0

    def on(self, sampling_interval: float = 1, samples_per_report: int = 10) -> None:
        """Begins to sample. Does nothing if it is on already.

        Args:
            sampling_interval: Seconds between samples, at least 0.1.
            samples_per_report: How many samples are averaged into one report.

        Raises:
            ValueError: One of the numbers is out of range.
            ImportError: psutil is not installed.
        """
        check_sampling(sampling_interval, samples_per_report)
        if self._thread is not None or self._dist.local_rank:
            return
        self._thread = _SamplingThread(
            self._open_sampler(),
            report=self._report,
            interval=float(sampling_interval),
            samples_per_report=samples_per_report,
        )
        self._thread.start()

    def off(self) -> None:
        """Ends sampling. Does nothing if it is off."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def close(self) -> None:
        """Ends sampling."""
        self.off()

    def _report(self, samples: Samples) -> None:
        self._reports += 1
        for group, values in samples.items():
            named = {f"{self._agent}.{name}": value for name, value in values.items()}
            self._reporter.report(group, self._reports, named)


class DummyProfilerContext:
    """The profiler off cluster: it samples nothing, but checks its arguments.

    Examples:
        >>> from resolute import core
        >>> profiler = core.DummyProfilerContext()
        >>> profiler.on(sampling_interval=1)
        >>> profiler.off()
    """

    def on(self, sampling_interval: float = 1, samples_per_report: int = 10) -> None:
        """Checks the arguments.

        Raises:
            ValueError: One of the numbers is out of range.
        """
        check_sampling(sampling_interval, samples_per_report)
        _log.info("nothing is sampled off cluster")

    def off(self) -> None:
        """Does nothing: off cluster nothing is sampled."""

    def close(self) -> None:
        """Does nothing: off cluster nothing is sampled."""


def check_sampling(sampling_interval: float, samples_per_report: int) -> None:
    """Checks the arguments of ``on``.

    Raises:
        ValueError: The interval is below 0.1 seconds, or the number of samples no whole number above zero.
    """
    number = isinstance(sampling_interval, (int, float)) and not isinstance(sampling_interval, bool)
    if not number or sampling_interval < _MIN_INTERVAL:
        raise ValueError(
            f"sampling_interval is {sampling_interval!r}; at least {_MIN_INTERVAL} seconds were expected"
        )
    whole = isinstance(samples_per_report, int) and not isinstance(samples_per_report, bool)
    if not whole or samples_per_report <= 0:
        raise ValueError(
            f"samples_per_report is {samples_per_report!r}; a whole number above zero was expected"
        )


class _SamplingThread:
    """Samples at an interval and reports averages."""

    def __init__(
        self, sampler: Sampler, *, report: Callable[[Samples], None], interval: float, samples_per_report: int
    ) -> None:
        self._sampler = sampler
        self._report = report
        self._interval = interval
        self._samples_per_report = samples_per_report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resolute-profiler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._sampler.close()

    def _run(self) -> None:
        averages = Averages()
        try:
            while not self._stop.wait(self._interval):
                averages.add(self._sampler.sample())
                if averages.count == self._samples_per_report:
                    self._report(averages.take())
            if averages.count:
                self._report(averages.take())
        except Exception:  # noqa: BLE001 - a view of the machine must not end the training
            _log.exception("sampling of the machine has ended")
