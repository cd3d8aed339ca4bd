"""Options of a trial for the library that exchanges its gradients."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from resolute.trial_errors import InvalidExperimentException

_HOROVOD_OTHERWISE = {
    "optimizer": "it is the first argument of wrap_optimizer()",
    "named_parameters": "they are those of the wrapped models",
    "backward_passes_per_step": "give it to wrap_optimizer() itself, or set aggregation_frequency",
}


def check_ddp_options(options: Mapping[str, Any], *, aggregation_frequency: int) -> None:
    """Checks the arguments for torch's ``DistributedDataParallel``, also where one rank makes none.

    Raises:
        InvalidExperimentException: It takes no such argument, or it cannot aggregate gradients with it.
    """
    known = set(inspect.signature(DistributedDataParallel).parameters) - {"module"}
    if unknown := sorted(options.keys() - known):
        raise InvalidExperimentException(
            f"ddp_options has {', '.join(unknown)}; torch's DistributedDataParallel takes "
            f"{', '.join(sorted(known))}"
        )
    if options.get("static_graph") and aggregation_frequency > 1:
        raise InvalidExperimentException(
            f"ddp_options has static_graph, and optimizations.aggregation_frequency is "
            f"{aggregation_frequency}: torch does not aggregate gradients of a static graph. Leave one out"
        )


def check_horovod_options(options: Mapping[str, Any]) -> None:
    """Checks the arguments for Horovod's ``DistributedOptimizer``, also where none is made.

    Raises:
        InvalidExperimentException: One of them is given in another way.
    """
    for name in sorted(options.keys() & _HOROVOD_OTHERWISE.keys()):
        raise InvalidExperimentException(f"horovod_options has {name}: {_HOROVOD_OTHERWISE[name]}")


@contextlib.contextmanager
def naming_ddp_options() -> Iterator[None]:
    """Adds to torch's errors about its own arguments, within a block, how a trial passes them."""
    try:
        yield
    except RuntimeError as failure:
        named = [name for name in ("find_unused_parameters", "static_graph") if name in str(failure)]
        if not named:
            raise
        raise RuntimeError(
            f"{failure}\nIn a PyTorchTrial {' and '.join(named)} of torch's DistributedDataParallel "
            f"{'are' if named[1:] else 'is'} given so: "
            f'context.wrap_model(model, ddp_options={{"{named[0]}": True}})'
        ) from failure
