"""A model of Hugging Face's kind, small enough to train in a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

STEPS = 5
"""Of an epoch."""


class Counting(Dataset[Any]):
    """Sequences that count up from some number."""

    def __len__(self) -> int:
        return 4 * STEPS

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = (torch.arange(6) + index) % 16
        return {"input_ids": tokens, "labels": tokens}


def make_model() -> GPT2LMHeadModel:
    torch.manual_seed(3)
    shape: dict[str, Any] = {"n_layer": 1, "n_head": 2, "n_embd": 8, "n_positions": 8, "vocab_size": 16}
    return GPT2LMHeadModel(GPT2Config(**shape, bos_token_id=0, eos_token_id=0))


def arguments(directory: Path, **options: Any) -> TrainingArguments:
    defaults = {"num_train_epochs": 3, "logging_steps": 1, "eval_strategy": "epoch", "save_strategy": "no"}
    return TrainingArguments(
        output_dir=str(directory),
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        disable_tqdm=True,
        report_to=[],
        use_cpu=True,
        **{**defaults, **options},
    )


def make_trainer(args: TrainingArguments, *callbacks: Any, evaluates: bool = True) -> Trainer:
    return Trainer(
        model=make_model(),
        args=args,
        train_dataset=Counting(),
        eval_dataset=Counting() if evaluates else None,
        callbacks=list(callbacks),
    )
