"""A trial's access to its hyperparameters and its config."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from resolute.runtime.batch_cost import BatchCost
from resolute.runtime.batch_sizes import BATCH_SIZE, slot_batch_size
from resolute.runtime.experiment_config import ExperimentConfig

_log = logging.getLogger("resolute.pytorch")


class Settings:
    """The hyperparameters and the config of a trial. It is the base class of the contexts.

    Args:
        hparams: The hyperparameters; None if the script gave none.
        exp_conf: The experiment's config; None if there is none.
        slots: Number of ranks that share a batch.

    Raises:
        InvalidExperimentException: There are more ranks than records in a batch.
    """

    def __init__(
        self, hparams: Mapping[str, Any] | None, exp_conf: Mapping[str, Any] | None, *, slots: int
    ) -> None:
        self._hparams = None if hparams is None else dict(hparams)
        self._exp_conf = None if exp_conf is None else ExperimentConfig(exp_conf)
        size = None if hparams is None else hparams.get(BATCH_SIZE)
        self._global_batch_size: int | None = size
        self._per_slot_batch_size = None if size is None else slot_batch_size(size, slots)
        self._batch_cost = BatchCost()

    def get_hparams(self) -> dict[str, Any]:
        """Returns all hyperparameters.

        Raises:
            ValueError: The script gave none to ``pytorch.init()``.
        """
        if self._hparams is None:
            raise ValueError(
                "hyperparameters are not known here: pass them, as pytorch.init(hparams=...); on a cluster "
                "they "
                "are get_cluster_info().trial.hparams"
            )
        return self._hparams

    def get_hparam(self, name: str) -> Any:
        """Returns one hyperparameter.

        Raises:
            ValueError: There is none of this name, or the script gave none at all.
        """
        hparams = self.get_hparams()
        if name not in hparams:
            raise ValueError(
                f"there is no hyperparameter {name!r}; there are: {', '.join(sorted(hparams)) or 'none'}"
            )
        if name == BATCH_SIZE:
            _log.warning(
                "get_hparam('global_batch_size') is the batch of all slots together; use "
                "get_per_slot_batch_size() for a data loader"
            )
        return hparams[name]

    def get_global_batch_size(self) -> int:
        """Returns the global batch size: records of a batch over all slots.

        Raises:
            ValueError: The hyperparameter ``global_batch_size`` is not set.
        """
        if self._global_batch_size is None:
            raise ValueError(_no_batch_size("global_batch_size"))
        return self._global_batch_size

    def get_per_slot_batch_size(self) -> int:
        """Returns the batch size of one slot, in records.

        Raises:
            ValueError: The hyperparameter ``global_batch_size`` is not set.
        """
        if self._per_slot_batch_size is None:
            raise ValueError(_no_batch_size("per_slot_batch_size"))
        return self._per_slot_batch_size

    def set_batch_cost(
        self, *, tokens: float | None = None, flops: float | None = None, peak_flops: float | None = None
    ) -> None:
        """Sets the cost of a global batch, from which ``tokens_per_second`` and ``mfu`` are computed.

        Args:
            tokens: Tokens in it.
            flops: Floating-point operations that the model needs for it, forward and backward: of a
                transformer about 6 times its parameters for each token.
            peak_flops: Operations a second that one slot could do at most, by its data sheet.

        Raises:
            ValueError: One is no number above 0, or ``flops`` and ``peak_flops`` are not given together.
        """
        self._batch_cost = BatchCost(tokens=tokens, flops=flops, peak_flops=peak_flops)

    def get_batch_cost(self) -> BatchCost:
        """Returns the cost of a batch that ``set_batch_cost`` set."""
        return self._batch_cost

    def get_experiment_config(self) -> ExperimentConfig:
        """Returns the experiment's config.

        Raises:
            ValueError: There is none.
        """
        if self._exp_conf is None:
            raise ValueError(
                "there is no experiment config here: pass one, as pytorch.init(exp_conf=...); on a cluster "
                "it is "
                "the experiment's own"
            )
        return self._exp_conf

    def get_data_config(self) -> dict[str, Any]:
        """Returns the config's section ``data``; empty if it has none.

        Raises:
            ValueError: There is no config.
        """
        return self.get_experiment_config().get_data()


def _no_batch_size(name: str) -> str:
    return (
        f"{name} is undefined because the hyperparameter global_batch_size is not set: put it into the "
        "config's "
        "hyperparameters, and pass them as pytorch.init(hparams=...)"
    )
