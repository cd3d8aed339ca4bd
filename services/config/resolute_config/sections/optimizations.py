"""The ``optimizations`` and ``profiling`` sections, which the Trial APIs read."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationInfo, field_validator

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Count, Flag, Positive, Section, Text


class Optimizations(Section):
    """Options for training a Trial class on several slots.

    Attributes:
        aggregation_frequency: Number of batches whose gradients are accumulated before they are exchanged.
        average_aggregated_gradients: Whether accumulated gradients are averaged instead of summed.
        average_training_metrics: Whether training metrics are averaged over all slots.
        gradient_compression: Whether gradients are exchanged in half precision.
        mixed_precision: Level of mixed precision.
        grad_updates_size_file: File with the sizes of gradients, for tuning their fusion.
        tensor_fusion_threshold: Amount of gradients that are exchanged together, in MiB.
        tensor_fusion_cycle_time: Wait for further gradients to exchange together, in milliseconds.
        auto_tune_tensor_fusion: Whether Horovod tunes both by itself.
    """

    aggregation_frequency: Positive = 1
    average_aggregated_gradients: Flag = True
    average_training_metrics: Flag = True
    gradient_compression: Flag = False
    mixed_precision: Literal["O0", "O1", "O2", "O3"] = "O0"
    grad_updates_size_file: Text | None = None
    tensor_fusion_threshold: Count = 64
    tensor_fusion_cycle_time: Count = 1
    auto_tune_tensor_fusion: Flag = False


class Profiling(Section):
    """The profiling of system usage.

    Attributes:
        enabled: Whether to record the usage.
        begin_on_batch: Number of the first batch.
        end_after_batch: Number of the last batch; None records to the end.
        sync_timings: Whether to wait for the GPU before times are measured.
    """

    enabled: Flag = False
    begin_on_batch: Count = 0
    end_after_batch: Count | None = None
    sync_timings: Flag = True

    @field_validator("end_after_batch")
    @classmethod
    def _after_begin(cls, end: int | None, info: ValidationInfo) -> int | None:
        begin = info.data.get("begin_on_batch")
        if end is not None and begin is not None and end < begin:
            raise reject(f"begin_on_batch ({begin}) or more")
        return end
