"""Saves a tensor that two ranks share, and takes it up with another layout. Runs under torchrun."""

from __future__ import annotations

import json
import sys

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from resolute import core
from resolute.core import DistributedContext
from resolute.pytorch.checkpointing.sharded import CheckpointReader, checkpoint_writer

FULL = torch.arange(64, dtype=torch.float32).reshape(8, 8)


def main(storage: str | dict[str, str]) -> None:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    distributed = DistributedContext.from_torch_distributed(chief_ip="127.0.0.1")
    with core.init(distributed=distributed, checkpoint_storage=storage) as context:
        state = {"weights": distribute_tensor(FULL, mesh, [Shard(0)]), "step": 3}
        with checkpoint_writer(context.checkpoint, {"steps_completed": 3}) as (writer, checkpoint_id):
            save(state, storage_writer=writer)
        for layout, files in ((Shard(0), 1), (Shard(1), 2), (Replicate(), 2)):
            weights = distribute_tensor(torch.zeros(8, 8), mesh, [layout])
            with CheckpointReader(context.checkpoint, checkpoint_id) as reader:
                load({"weights": weights}, storage_reader=reader)
                fetched = {path for path in reader._fetched if path.endswith(".distcp")}
            assert torch.equal(weights.full_tensor(), FULL)
            assert len(fetched) == files, "a rank fetches the shards that it needs, and no others"
        rest = {"step": 0}
        with CheckpointReader(context.checkpoint, checkpoint_id) as reader:
            load(rest, storage_reader=reader)
        assert rest == {"step": 3}
        if dist.get_rank() == 0:
            print("sharded checkpoint", checkpoint_id, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
