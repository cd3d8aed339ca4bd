"""Horovod by determined's proxy, and its DistributedContext."""

import torch

import determined as det
from determined.horovod import hvd

hvd.require_horovod_type("torch", "this script trains with torch")
hvd.init()
info = det.get_cluster_info()
model = torch.nn.Linear(1, 1)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), info.trial.hparams["lr"]), named_parameters=model.named_parameters()
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
with det.core.init(distributed=det.core.DistributedContext.from_horovod(hvd)) as core_context:
    assert core_context.distributed.size == hvd.size() == 2
    assert hvd.cross_size() == 1
    for op in core_context.searcher.operations():
        for step in range(op.length):
            optimizer.zero_grad()
            loss = model(torch.full((2, 1), hvd.rank() + 1.0)).pow(2).mean()
            loss.backward()
            optimizer.step()
        total = hvd.allreduce(loss.detach(), name="loss").item()
        if hvd.rank() == 0:
            core_context.train.report_training_metrics(op.length, {"loss": total})
            core_context.train.report_validation_metrics(op.length, {"loss": total})
            op.report_completed(total)
