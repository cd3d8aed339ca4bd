"""The share of the model and of the data that a rank has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from resolute.core import DistributedContext


@dataclass
class ModelParallelUnit:
    """The position of one rank among ranks that may share a replica of the model.

    Attributes:
        data_parallel_rank: Index of the rank's model replica, from 0; it determines the rank's share of the
            data.
        data_parallel_world_size: Number of model replicas.
        should_report_metrics: Whether the metrics that ``train_batch`` and ``evaluate_batch`` return on this
            rank count.
        should_build_data_loader: Whether the rank needs data: in a pipeline only the first and the last stage
            do.
    """

    data_parallel_rank: int
    data_parallel_world_size: int
    should_report_metrics: bool
    should_build_data_loader: bool


class Grid(Protocol):
    """The methods of DeepSpeed's ``PipelineParallelGrid`` that are used."""

    def get_pipe_parallel_rank(self) -> int:
        """Returns the pipeline stage of this rank."""

    def get_pipe_parallel_world_size(self) -> int:
        """Returns the number of pipeline stages."""

    def get_slice_parallel_rank(self) -> int:
        """Returns the rank among those that share a layer."""

    def get_data_parallel_rank(self) -> int:
        """Returns the index of this rank's model replica."""

    def get_data_parallel_world_size(self) -> int:
        """Returns the number of model replicas."""


def make_data_parallel_mpu(dist_context: DistributedContext) -> ModelParallelUnit:
    """Returns the unit of a rank that has a whole model replica.

    Args:
        dist_context: The ranks.
    """
    return ModelParallelUnit(
        data_parallel_rank=dist_context.get_rank(),
        data_parallel_world_size=dist_context.get_size(),
        should_report_metrics=True,
        should_build_data_loader=True,
    )


def make_deepspeed_mpu(topology: Grid) -> ModelParallelUnit:
    """Returns the unit of a rank in one of DeepSpeed's pipelines, where every rank gets the loss.

    Args:
        topology: The pipeline engine's ``mpu``.
    """
    stage, stages = topology.get_pipe_parallel_rank(), topology.get_pipe_parallel_world_size()
    return ModelParallelUnit(
        data_parallel_rank=topology.get_data_parallel_rank(),
        data_parallel_world_size=topology.get_data_parallel_world_size(),
        should_report_metrics=True,
        should_build_data_loader=stage in {0, stages - 1} and topology.get_slice_parallel_rank() == 0,
    )
