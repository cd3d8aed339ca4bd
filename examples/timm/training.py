"""What all steps have in common, in the way of timm's own training script: arguments, parts, one epoch."""

import argparse
import logging
import os
from dataclasses import dataclass
from typing import Any

import torch
from digits import Digits
from timm import utils
from timm.data import create_loader
from timm.models import create_model
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from torch import distributed as dist
from torch import nn

log = logging.getLogger("train")

parser = argparse.ArgumentParser(description="Trains an image model of timm on handwritten digits.")
parser.add_argument("--model", default="test_resnet", help="any name that timm.list_models() gives")
parser.add_argument("--input-size", default=[3, 32, 32], nargs=3, type=int, metavar="N")
parser.add_argument("--batch-size", default=64, type=int, help="images of one process")
parser.add_argument("--epochs", default=5, type=int)
parser.add_argument("--opt", default="momentum")
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--weight-decay", default=2e-5, type=float)
parser.add_argument("--sched", default="cosine")
parser.add_argument("--seed", default=42, type=int)
parser.add_argument("--output", default="output", help="where checkpoints go")
parser.add_argument("--resume", default="", help="a checkpoint to go on from")
parser.add_argument("--local_rank", default=0, type=int, help="which GPU of this machine to use")


def parse_args(namespace=None):
    """Reads the command line; a namespace holds values that take the place of defaults."""
    args = parser.parse_args(namespace=namespace)
    return args, ", ".join(f"{name}={value}" for name, value in sorted(vars(args).items()))


def start(args):
    """Joins the other processes, if a launcher started several."""
    args.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    args.distributed = args.world_size > 1
    args.rank = 0
    args.device = torch.device("cuda", args.local_rank) if torch.cuda.is_available() else torch.device("cpu")
    if args.distributed:
        dist.init_process_group(
            backend="nccl" if args.device.type == "cuda" else "gloo", init_method="env://"
        )
        args.rank = dist.get_rank()
        log.info("Training with several processes. Process %d, total %d.", args.rank, args.world_size)
    else:
        log.info("Training with a single process.")
    utils.random_seed(args.seed, args.rank)


@dataclass
class Parts:
    """What is trained, and with what."""

    bare_model: nn.Module
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any
    loader_train: Any
    loader_eval: Any


def build(args):
    model = create_model(args.model, num_classes=10, in_chans=args.input_size[0]).to(args.device)
    optimizer = create_optimizer_v2(model, opt=args.opt, lr=args.lr, weight_decay=args.weight_decay)
    scheduler, _ = create_scheduler_v2(optimizer, sched=args.sched, num_epochs=args.epochs)
    wrapped = nn.parallel.DistributedDataParallel(model) if args.distributed else model
    return Parts(model, wrapped, optimizer, scheduler, loader(args, "training"), loader(args, "validation"))


def loader(args, split):
    return create_loader(
        Digits(split),
        input_size=tuple(args.input_size),
        batch_size=args.batch_size,
        is_training=split == "training",
        no_aug=True,
        num_workers=0,
        persistent_workers=False,
        distributed=args.distributed,
        use_prefetcher=False,
        device=args.device,
    )


def train_one_epoch(epoch, parts, args):
    if args.distributed:
        parts.loader_train.sampler.set_epoch(epoch)
    parts.model.train()
    losses = utils.AverageMeter()
    for images, digits in parts.loader_train:
        loss = nn.functional.cross_entropy(parts.model(images.to(args.device)), digits.to(args.device))
        parts.optimizer.zero_grad()
        loss.backward()
        parts.optimizer.step()
        losses.update(loss.item(), len(images))
    metrics = averaged({"loss": losses.avg}, args)
    log.info(
        "Train: epoch %d, loss %.4f, lr %.4f", epoch, metrics["loss"], parts.optimizer.param_groups[0]["lr"]
    )
    return metrics


def validate(parts, args):
    parts.model.eval()
    losses, hits = utils.AverageMeter(), utils.AverageMeter()
    with torch.no_grad():
        for images, digits in parts.loader_eval:
            scores = parts.bare_model(images.to(args.device))
            expected = digits.to(args.device)
            losses.update(nn.functional.cross_entropy(scores, expected).item(), len(images))
            hits.update(utils.accuracy(scores, expected)[0].item(), len(images))
    metrics = averaged({"loss": losses.avg, "top1": hits.avg}, args)
    log.info("Test: loss %.4f, top1 %.2f", metrics["loss"], metrics["top1"])
    return metrics


def averaged(metrics, args):
    """The means of all processes."""
    if not args.distributed:
        return metrics
    mine = torch.tensor(list(metrics.values()), device=args.device)
    return dict(zip(metrics, utils.reduce_tensor(mine, args.world_size).tolist(), strict=True))
