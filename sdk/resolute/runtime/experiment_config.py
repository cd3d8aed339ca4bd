"""The experiment config for training code."""

from __future__ import annotations

from typing import Any


class ExperimentConfig(dict[str, Any]):
    """The config as a plain dict, with methods for values that training code often needs.

    Examples:
        >>> import resolute
        >>> config = resolute.ExperimentConfig({"resources": {"slots_per_trial": 4}})
        >>> config.slots_per_trial(), config.scheduling_unit()
        (4, 100)
    """

    def get_entrypoint(self) -> str | list[str] | None:
        """What runs: a command as text or as a list; None when the config has none."""
        entrypoint: str | list[str] | None = self.get("entrypoint")
        return entrypoint

    def debug_enabled(self) -> bool:
        """Whether trials log in detail; default False."""
        return bool(self.get("debug", False))

    def scheduling_unit(self) -> int:
        """Batches between two reports of training metrics; default 100."""
        return int(self.get("scheduling_unit", 100))

    def experiment_seed(self) -> int:
        """Seed of the experiment; default 0."""
        return int(self._section("reproducibility").get("experiment_seed", 0))

    def slots_per_trial(self) -> int:
        """Slots of a trial; default 1."""
        return int(self._section("resources").get("slots_per_trial", 1))

    def native_parallel_enabled(self) -> bool:
        """Whether the framework itself uses several slots in one process; default False."""
        return bool(self._section("resources").get("native_parallel", False))

    def profiling_enabled(self) -> bool:
        """Whether system metrics are sampled; default False."""
        return bool(self._section("profiling").get("enabled", False))

    def profiling_interval(self) -> tuple[int, int | None]:
        """First and last batch of profiling; the last is None when it does not end."""
        profiling = self._section("profiling")
        return int(profiling.get("begin_on_batch", 0)), profiling.get("end_after_batch")

    def profiling_sync_timings(self) -> bool:
        """Whether timings wait for the device; default True."""
        return bool(self._section("profiling").get("sync_timings", True))

    def get_optimizations_config(self) -> dict[str, Any]:
        """The section ``optimizations``; empty when the config has none."""
        return dict(self._section("optimizations"))

    def average_training_metrics_enabled(self) -> bool:
        """Whether training metrics are averaged over all ranks; default True."""
        return bool(self._section("optimizations").get("average_training_metrics", True))

    def get_checkpoint_storage(self) -> dict[str, Any]:
        """The section ``checkpoint_storage``; empty when the config has none."""
        return dict(self._section("checkpoint_storage"))

    def get_searcher(self) -> dict[str, Any]:
        """The section ``searcher``; empty when the config has none."""
        return dict(self._section("searcher"))

    def get_data(self) -> dict[str, Any]:
        """The section ``data``; empty when the config has none."""
        return dict(self._section("data"))

    def _section(self, name: str) -> dict[str, Any]:
        return self.get(name) or {}
