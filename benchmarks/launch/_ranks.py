"""What each rank does in the benchmark of layers: ``_ranks.py FILE STEPS``; rank 0 writes the times."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

BEGAN = time.time()
SAID_EVERY = 10
"""Steps of a block: its time holds the cost of one line, and of the ranks' waiting for whom it kept."""


def joined() -> tuple[int, Callable[[object], object], Callable[[], object]]:
    """Rank of this process, what averages a tensor over all ranks, and what leaves them."""
    if "HOROVOD_RANK" in os.environ:
        import horovod.torch as hvd

        hvd.init()
        return hvd.rank(), hvd.allreduce, hvd.shutdown
    from torch import distributed as dist

    dist.init_process_group("gloo")
    return dist.get_rank(), dist.all_reduce, dist.destroy_process_group


def main() -> None:
    import torch

    torch.set_num_threads(1)
    rank, average, leave = joined()
    layer = torch.nn.Linear(256, 256)
    blocks, begun = [], time.perf_counter()
    for step in range(1, int(sys.argv[2]) + 1):
        layer.zero_grad()
        layer(torch.randn(32, 256)).square().mean().backward()
        average(layer.weight.grad)
        if step == 1:
            first = time.time()
        if step % SAID_EVERY == 0:
            # As scripts do: what a layer costs a step, it costs by its output.
            sys.stdout.write(f"step {step}\n")
            now = time.perf_counter()
            blocks.append((now - begun) / SAID_EVERY)
            begun = now
    leave()
    if rank == 0:
        # The median: other programs of the machine take single blocks away. The first one warms up.
        result = {"began": BEGAN, "first": first, "step": statistics.median(blocks[1:])}
        Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
