"""What each rank of ``test_networks.py`` runs: both kinds of exchange between ranks, over their network.

Ranks on the nodes of engines meet by it too.
"""

from __future__ import annotations

import os

import torch

from resolute.core import DistributedContext


def by_torch() -> tuple[float, DistributedContext]:
    """The sum of all ranks by a process group, and the ranks."""
    from torch import distributed as dist

    dist.init_process_group("gloo")
    total = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(total)
    if os.environ.get("USE_DEEPSPEED"):
        return total.item(), DistributedContext.from_deepspeed()
    return total.item(), DistributedContext.from_torch_distributed()


def by_horovod() -> tuple[float, DistributedContext]:
    """The same by Horovod."""
    import horovod.torch as hvd

    hvd.init()
    total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum)
    return total.item(), DistributedContext.from_horovod(hvd)


def meet() -> tuple[float, DistributedContext]:
    """The same by what the layer of this rank wants."""
    return by_horovod() if os.environ.get("USE_HOROVOD") else by_torch()


if __name__ == "__main__":
    total, ranks = meet()
    with ranks:
        print("sum", total, "ranks", ranks.allgather(ranks.rank), flush=True)
