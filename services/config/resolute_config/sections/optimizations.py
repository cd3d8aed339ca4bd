"""The ``optimizations`` and ``profiling`` sections, which the Trial APIs read."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationInfo, field_validator

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Count, Flag, Positive, Section, Text


class Optimizations(Section):
    """How a Trial class trains on several slots.

    Attributes:
        aggregation_frequency: Batches whose gradients are gathered before they are exchanged.
        average_aggregated_gradients: Whether gathered gradients are averaged rather than summed.
        average_training_metrics: Whether training metrics are averaged over all slots.
        gradient_compression: Whether gradients are exchanged in half precision.
        mixed_precision: Level of mixed precision.
        grad_updates_size_file: File with the sizes of gradients, to tune their fusion.
        tensor_fusion_threshold: MiB of gradients that are exchanged together.
        tensor_fusion_cycle_time: Milliseconds to wait for gradients to exchange together.
        auto_tune_tensor_fusion: Whether Horovod finds both by itself.
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
    """When to record the use of the system.

    Attributes:
        enabled: Whether to record at all.
        begin_on_batch: First batch.
        end_after_batch: Last batch; None records to the end.
        sync_timings: Whether to wait for the GPU before times are taken.
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
