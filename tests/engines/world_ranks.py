"""What each rank of ``test_several_nodes.py`` runs: it says whom it has met and where it is, then trains."""

import importlib
import logging
import os
import socket

import torch
from torch import distributed as dist

from resolute import LOG_FORMAT, core, get_cluster_info

log = logging.getLogger("world")

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    dist.init_process_group("gloo")
    try:
        with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
            total = torch.tensor([context.distributed.rank + 1.0])
            dist.all_reduce(total)
            node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
            log.info("world of %d, sum %g, on %s", dist.get_world_size(), total.item(), node)
            # It is beside this file in the experiment's model definition.
            importlib.import_module("train").main(context, get_cluster_info())
    finally:
        dist.destroy_process_group()
