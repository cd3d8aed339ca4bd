"""What each rank of ``test_several_nodes.py`` runs: it says whom it has met and where it is, then trains.

It trains by an example of its layer, which its argument names.
"""

import importlib
import logging
import os
import socket
import sys

from torch import distributed as dist

from resolute import LOG_FORMAT, core, get_cluster_info

log = logging.getLogger("world")

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    # Beside this file in the experiment's model definition are what they meet by, and the example.
    total, ranks = importlib.import_module("network_ranks").meet()
    try:
        with core.init(distributed=ranks) as context:
            node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
            log.info("world of %d, sum %g, on %s", ranks.size, total, node)
            importlib.import_module(sys.argv[1]).main(context, get_cluster_info())
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
