"""Hugging Face's Trainer as a trial: here with `python3 train.py`, or on a cluster."""

import logging
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import resolute

HPARAMS = {"lr": 0.003, "batch_size": 16, "max_steps": 20}
LENGTH, WORDS = 16, 32


class Counting(Dataset):
    """Sequences that count upwards. Replace it by your data."""

    def __init__(self, count, *, seed):
        starts = torch.randint(WORDS, (count, 1), generator=torch.Generator().manual_seed(seed))
        self.samples = (starts + torch.arange(LENGTH)) % WORDS

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return {"input_ids": self.samples[index], "labels": self.samples[index]}


def make_model():
    # Replace it by your model, such as AutoModelForCausalLM.from_pretrained(...).
    size = {"n_layer": 1, "n_head": 2, "n_embd": 32, "n_positions": LENGTH}
    return GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, bos_token_id=0, eos_token_id=0, **size))


def train(output):
    # On a cluster the hyperparameters and the seed are those of the trial.
    with resolute.core.init(hparams=HPARAMS) as context:
        hparams = context.hparams
        set_seed(context.seed)
        arguments = TrainingArguments(
            output_dir=output,
            max_steps=hparams["max_steps"],
            learning_rate=hparams["lr"],
            per_device_train_batch_size=hparams["batch_size"],
            logging_steps=5,
            eval_strategy="steps",
            eval_steps=10,
            save_strategy="steps",
            save_steps=10,
            save_total_limit=1,  # here; the platform keeps its own
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=make_model(),
            args=arguments,
            train_dataset=Counting(512, seed=1),
            eval_dataset=Counting(64, seed=2),
            callbacks=[resolute.transformers.ResoluteCallback(context, arguments)],
        )
        trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    # One process, so any directory will do; several need one that all of them see.
    with tempfile.TemporaryDirectory() as directory:
        train(directory)
