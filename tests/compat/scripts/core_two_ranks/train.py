"""DDP on two ranks with a sharded checkpoint, as the distributed guide of the Core API has it."""

import pathlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

import determined as det

info = det.get_cluster_info()
dist.init_process_group("gloo")
distributed = det.core.DistributedContext.from_torch_distributed()
torch.manual_seed(info.trial.trial_seed)
model = DDP(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=info.trial.hparams["lr"])
with det.core.init(distributed=distributed) as core_context:
    assert (distributed.get_rank(), distributed.get_size()) == (dist.get_rank(), 2)
    assert distributed.get_num_agents() == 1
    for op in core_context.searcher.operations():
        for epoch in range(op.length):
            loss = model(torch.ones(4, 3) * (distributed.rank + 1)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses = distributed.gather(loss.item())
            if distributed.rank == 0:
                mean = sum(losses) / len(losses)
                core_context.train.report_training_metrics(epoch + 1, {"loss": mean})
                op.report_progress(epoch + 1)
            if core_context.preempt.should_preempt():
                break
        with core_context.checkpoint.store_path({"steps_completed": op.length}, shard=True) as (path, uuid):
            torch.save(model.state_dict(), path / f"rank-{distributed.rank}.pt")
        if distributed.rank == 0:
            core_context.train.report_validation_metrics(op.length, {"loss": mean})
            op.report_completed(mean)
    with core_context.checkpoint.restore_path(
        uuid, selector=lambda name: name.endswith(f"rank-{distributed.rank}.pt")
    ) as path:
        torch.load(pathlib.Path(path) / f"rank-{distributed.rank}.pt")
    values = distributed.allgather(distributed.local_rank)
    assert values == [0, 1], values
    assert distributed.broadcast("hello" if distributed.rank == 0 else None) == "hello"
dist.destroy_process_group()
