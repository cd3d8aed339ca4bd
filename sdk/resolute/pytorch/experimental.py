"""What may still change."""

from resolute.pytorch.batch_processing import (
    TorchBatchProcessor,
    TorchBatchProcessorContext,
    torch_batch_process,
)

__all__ = ["TorchBatchProcessor", "TorchBatchProcessorContext", "torch_batch_process"]
