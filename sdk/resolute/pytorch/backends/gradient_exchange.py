"""The exchange of gradients between the ranks of one trial."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from resolute.core import DistributedContext
from resolute.trial_errors import InvalidExperimentException

USE_HOROVOD = "USE_HOROVOD"
USE_TORCH_DISTRIBUTED = "USE_TORCH_DISTRIBUTED"


class Backend(Protocol):
    """Exchanges gradients."""

    def wrap_model(self, model: nn.Module, device: torch.device, options: Mapping[str, Any]) -> nn.Module:
        """Returns the model that the trial calls in place of its own.

        Args:
            model: The model.
            device: Where this rank trains.
            options: Arguments for ``DistributedDataParallel``, where that is used.
        """

    def wrap_optimizer(
        self,
        optimizer: Any,
        models: Iterable[nn.Module],
        *,
        passes: int,
        compression: Any,
        options: Mapping[str, Any],
    ) -> Any:
        """Returns the optimizer that is stepped in place of the trial's.

        Args:
            optimizer: The trial's optimizer.
            models: The wrapped models.
            passes: Backward passes to a step.
            compression: Of gradients on their way; None for the backend's default.
            options: Arguments for Horovod's ``DistributedOptimizer``, where that is used.
        """

    def without_sync(self, models: Iterable[nn.Module]) -> AbstractContextManager[object]:
        """Returns a context in which gradients are accumulated and not exchanged."""

    def finish_batch(self, models: Iterable[nn.Module]) -> None:
        """Checks that the gradients of a batch were exchanged.

        Raises:
            RuntimeError: Some were not, such as those of a parameter that only other ranks used.
        """

    def evaluation_mode(self, models: Iterable[nn.Module]) -> AbstractContextManager[object]:
        """Returns a context in which models are called without communication between ranks."""

    def synchronize(self, optimizer: Any) -> None:
        """Waits until an optimizer's gradients are averaged over all ranks."""

    def optimizer_step(self, optimizer: Any) -> AbstractContextManager[object]:
        """Returns a context in which a synchronized optimizer is stepped."""

    def broadcast_state(self, models: Iterable[nn.Module], optimizers: Iterable[Any]) -> None:
        """Broadcasts the chief's state to all ranks."""


class SingleRank:
    """The backend of a single rank, which exchanges nothing."""

    def wrap_model(self, model: nn.Module, device: torch.device, options: Mapping[str, Any]) -> nn.Module:
        """Returns the model itself."""
        return model

    def wrap_optimizer(
        self,
        optimizer: Any,
        models: Iterable[nn.Module],
        *,
        passes: int,
        compression: Any,
        options: Mapping[str, Any],
    ) -> Any:
        """Returns the optimizer itself."""
        return optimizer

    def without_sync(self, models: Iterable[nn.Module]) -> AbstractContextManager[object]:
        """Returns a context without effect."""
        return contextlib.nullcontext()

    def finish_batch(self, models: Iterable[nn.Module]) -> None:
        """Does nothing: there is no other rank."""

    def evaluation_mode(self, models: Iterable[nn.Module]) -> AbstractContextManager[object]:
        """Returns a context without effect."""
        return contextlib.nullcontext()

    def synchronize(self, optimizer: Any) -> None:
        """Does nothing: there is no other rank."""

    def optimizer_step(self, optimizer: Any) -> AbstractContextManager[object]:
        """Returns a context without effect."""
        return contextlib.nullcontext()

    def broadcast_state(self, models: Iterable[nn.Module], optimizers: Iterable[Any]) -> None:
        """Does nothing: there is no other rank."""


class DistributedModel(DistributedDataParallel):
    """Torch's DistributedDataParallel with the attributes of the wrapped model."""

    sync_enabled = True
    """Whether a forward pass may wait for other ranks."""

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the model."""
        if not self.sync_enabled:
            return self.module(*inputs, **kwargs)
        return super().forward(*inputs, **kwargs)  # type: ignore[no-untyped-call]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "module":
                raise
            return getattr(super().__getattr__("module"), name)


class TorchDistributed(SingleRank):
    """The backend by torch's process group, which the script or the trainer has initialised."""

    def wrap_model(self, model: nn.Module, device: torch.device, options: Mapping[str, Any]) -> nn.Module:
        """Wraps the model in DistributedDataParallel, unless it has no trainable parameters."""
        if not any(parameter.requires_grad for parameter in model.parameters()):
            return model
        devices = [device.index] if device.type == "cuda" else None
        return DistributedModel(model, **{"device_ids": devices, **options})

    def without_sync(self, models: Iterable[nn.Module]) -> AbstractContextManager[object]:
        """Returns a context without gradient exchange. The forward pass must be inside as well."""
        stack = contextlib.ExitStack()
        for model in models:
            if isinstance(model, DistributedDataParallel):
                stack.enter_context(model.no_sync())
        return stack

    def finish_batch(self, models: Iterable[nn.Module]) -> None:
        """Checks that all gradients were exchanged, as torch does at the next forward pass.

        After the last batch before a validation that pass is late: this rank would wait for the others in
        the validation, and they for its gradients.
        """
        for model in models:
            if isinstance(model, DistributedModel) and model.require_backward_grad_sync:
                model.reducer._rebuild_buckets()

    @contextlib.contextmanager
    def evaluation_mode(self, models: Iterable[nn.Module]) -> Iterator[None]:
        """Returns a context in which every rank has the chief's buffers, and exchanges none.

        Ranks may have more or fewer batches than others, and a whole data set is the chief's alone: an
        exchange with each batch would wait forever.
        """
        wrapped = [model for model in models if isinstance(model, DistributedModel)]
        for model in wrapped:
            for buffer in model.module.buffers():
                torch.distributed.broadcast(buffer, src=0)
            model.sync_enabled = False
        try:
            yield
        finally:
            for model in wrapped:
                model.sync_enabled = True


class Horovod(SingleRank):
    """The backend by Horovod, which was initialised before.

    Args:
        hvd: The module ``horovod.torch``.
    """

    def __init__(self, hvd: Any) -> None:
        self._hvd = hvd

    def wrap_optimizer(
        self,
        optimizer: Any,
        models: Iterable[nn.Module],
        *,
        passes: int,
        compression: Any,
        options: Mapping[str, Any],
    ) -> Any:
        """Wraps the optimizer in Horovod's."""
        names = {parameter: name for name, parameter in _named_parameters(models)}
        ours = [
            (names.get(parameter, f"parameter.{group}.{index}"), parameter)
            for group, entry in enumerate(optimizer.param_groups)
            for index, parameter in enumerate(entry["params"])
        ]
        if options.get("op") == self._hvd.Adasum:
            raise InvalidExperimentException(
                "horovod_options has op=Adasum, which exchanges inside of step(): a PyTorchTrial exchanges "
                "before it, so that gradients can be clipped. Use Average or Sum"
            )
        arguments = {"compression": compression or self._hvd.Compression.none, **options}
        return self._hvd.DistributedOptimizer(
            optimizer, named_parameters=ours, backward_passes_per_step=passes, **arguments
        )

    def evaluation_mode(self, models: Iterable[nn.Module]) -> AbstractContextManager[object]:
        """Returns a context in which every rank has the chief's buffers: Horovod exchanges gradients only."""
        for model in models:
            self._hvd.broadcast_parameters(dict(model.named_buffers()), root_rank=0)
        return contextlib.nullcontext()

    def synchronize(self, optimizer: Any) -> None:
        """Waits for the exchange, so that gradients can be clipped."""
        optimizer.synchronize()

    def optimizer_step(self, optimizer: Any) -> AbstractContextManager[object]:
        """Returns a context in which the optimizer does not synchronize again."""
        block: AbstractContextManager[object] = optimizer.skip_synchronize()
        return block

    def broadcast_state(self, models: Iterable[nn.Module], optimizers: Iterable[Any]) -> None:
        """Broadcasts the chief's weights and optimizer states."""
        for model in models:
            self._hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        for optimizer in optimizers:
            self._hvd.broadcast_optimizer_state(optimizer, root_rank=0)


def _named_parameters(models: Iterable[nn.Module]) -> Iterable[tuple[str, Any]]:
    for number, model in enumerate(models):
        for name, parameter in model.named_parameters():
            yield f"model{number}.{name}", parameter


def import_horovod() -> Any:
    """Imports ``horovod.torch``.

    Raises:
        ImportError: It is not installed.
    """
    try:
        import horovod.torch as hvd
    except ImportError as failure:
        raise ImportError(
            "the environment variable USE_HOROVOD asks for Horovod, and horovod.torch cannot be imported: "
            "install "
            "it with its PyTorch support, or launch with determined.launch.torch_distributed instead"
        ) from failure
    return hvd


def choose_backend(distributed: DistributedContext, environ: Mapping[str, str] = os.environ) -> Backend:
    """Returns the backend that the environment asks for.

    Args:
        distributed: The other ranks.
        environ: Where ``USE_TORCH_DISTRIBUTED`` and ``USE_HOROVOD`` are looked for.

    Raises:
        ValueError: There are several ranks and neither is set, or torch's process group is missing.
        ImportError: Horovod is asked for and not installed.
    """
    if environ.get(USE_HOROVOD):
        return Horovod(import_horovod()) if distributed.size > 1 else SingleRank()
    if distributed.size < 2:
        return SingleRank()
    if not environ.get(USE_TORCH_DISTRIBUTED):
        raise ValueError(
            f"there are {distributed.size} ranks, and nothing says how they exchange gradients: set the "
            "environment variable USE_TORCH_DISTRIBUTED to true, or USE_HOROVOD to 1, before pytorch.init()"
        )
    if not torch.distributed.is_initialized():
        raise ValueError(
            "USE_TORCH_DISTRIBUTED is set, but torch has no process group: call "
            "torch.distributed.init_process_group() before pytorch.init()"
        )
    return TorchDistributed()
