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
    times = []
    for step in range(int(sys.argv[2])):
        begun = time.perf_counter()
        layer.zero_grad()
        layer(torch.randn(32, 256)).square().mean().backward()
        average(layer.weight.grad)
        if step % SAID_EVERY == 0:
            # As scripts do: what a layer costs a step, it costs by its output.
            sys.stdout.write(f"step {step}\n")
        times.append(time.perf_counter() - begun)
        if step == 0:
            first = time.time()
    leave()
    if rank == 0:
        result = {"began": BEGAN, "first": first, "step": statistics.fmean(times[1:])}
        Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
