"""The base class of trials in PyTorch."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from torch.utils.data import DataLoader as TorchDataLoader

from resolute.pytorch.data.loader import DataLoader, data_length
from resolute.pytorch.metrics.reducers import Reducer
from resolute.pytorch.trial.callbacks import PyTorchCallback
from resolute.pytorch.trial.context import PyTorchTrialContext


class PyTorchTrial(abc.ABC):
    """A trial with its model, data and methods for batches. Derive a class that overrides methods.

    Override the abstract methods, and one of ``evaluate_batch`` and ``evaluate_full_dataset``.

    Examples:
        >>> import torch
        >>> from resolute import pytorch
        >>> class Line(pytorch.PyTorchTrial):
        ...     def __init__(self, context):
        ...         self.context = context
        ...         self.model = context.wrap_model(torch.nn.Linear(1, 1))
        ...         self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        ...     def train_batch(self, batch, epoch_idx, batch_idx):
        ...         loss = (self.model(batch) - 2 * batch).square().mean()
        ...         self.context.backward(loss)
        ...         self.context.step_optimizer(self.optimizer)
        ...         return {"loss": loss}
        ...     def evaluate_batch(self, batch, batch_idx):
        ...         return {"error": (self.model(batch) - 2 * batch).abs().mean()}
        ...     def build_training_data_loader(self):
        ...         return pytorch.DataLoader(torch.rand(32, 1), batch_size=8)
        ...     def build_validation_data_loader(self):
        ...         return pytorch.DataLoader(torch.rand(8, 1), batch_size=8)
        >>> with pytorch.init() as context:
        ...     trainer = pytorch.Trainer(Line(context), context)
        ...     trainer.fit(max_length=pytorch.Epoch(1), checkpoint_policy="none")
    """

    trial_controller_class: ClassVar[Any] = None
    trial_context_class: ClassVar[type] = PyTorchTrialContext

    @abc.abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """Creates and wraps models, optimizers and schedulers.

        Args:
            context: What the platform offers; keep it.
        """

    @abc.abstractmethod
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        """Trains with one batch: computes a loss, then calls ``context.backward`` and ``step_optimizer``.

        A trial with one optimizer may leave both calls out: then the platform makes them, of the ``loss``
        that is returned.

        Args:
            batch: What the loader yields, on this rank's device.
            epoch_idx: The epoch, from 0, over all runs of the trial.
            batch_idx: The batch of this slot, from 0, over all epochs and all runs of the trial.

        Returns:
            Metrics by name, or the loss as a tensor.
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> DataLoader | TorchDataLoader[Any]:
        """Returns the loader of training data, with batches of ``context.get_per_slot_batch_size()``.

        A ``torch.utils.data.DataLoader`` is taken as one of the platform's with the same arguments.
        """

    @abc.abstractmethod
    def build_validation_data_loader(self) -> DataLoader | TorchDataLoader[Any]:
        """Returns the loader of validation data."""

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Returns callbacks by name. Their state is kept in checkpoints by that name."""
        return {}

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        """Evaluates one batch. May be written without ``batch_idx``.

        Args:
            batch: What the loader yields, on this rank's device.
            batch_idx: The batch of this slot within the validation, from 0.

        Returns:
            Metrics by name.
        """
        raise NotImplementedError

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        """Evaluates all validation data at once, on the chief alone.

        Args:
            data_loader: The validation loader, not sharded.

        Returns:
            Metrics by name.
        """
        raise NotImplementedError

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        """Returns how the metrics of ``evaluate_batch`` are reduced: one way, or one for each metric."""
        return Reducer.AVG

    def get_batch_length(self, batch: Any) -> int:
        """Returns the number of records of a batch.

        Raises:
            TypeError: The batch is of a kind whose length is not known; override this method.
        """
        return data_length(batch)
