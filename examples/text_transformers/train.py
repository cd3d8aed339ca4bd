"""Letters of Python's manual by Hugging Face's Trainer: here with `python3 train.py`, or on a cluster."""

import argparse
import logging
import tempfile
from pydoc_data.topics import topics

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

import resolute
from resolute.transformers import ResoluteCallback

DEFAULT_HPARAMS = {"lr": 0.003, "width": 32, "batch_size": 32, "max_steps": 100}
LETTERS = 64  # of a sample
TRAINING_SAMPLES, VALIDATION_SAMPLES = 2048, 256


class Samples(Dataset):
    """Stretches of the help texts that ship with Python, as the bytes that they are."""

    def __init__(self, first, count):
        text = "\n".join(topics[name] for name in sorted(topics)).encode()[first * LETTERS :]
        self.samples = torch.tensor(list(text[: count * LETTERS])).reshape(count, LETTERS)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return {"input_ids": self.samples[index], "labels": self.samples[index]}


def make_model(width):
    return GPT2LMHeadModel(
        GPT2Config(
            n_layer=1,
            n_head=2,
            n_embd=width,
            n_positions=LETTERS,
            vocab_size=256,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def train(output, *, test):
    info = resolute.get_cluster_info()
    hparams = DEFAULT_HPARAMS if info is None else info.trial.hparams
    arguments = TrainingArguments(
        output_dir=output,
        max_steps=1 if test else hparams["max_steps"],
        learning_rate=hparams["lr"],
        per_device_train_batch_size=hparams["batch_size"],
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=50,
        save_strategy="steps",
        save_steps=50,
        save_total_limit=1,  # here; the platform keeps its own
        report_to=[],
        disable_tqdm=info is not None,
    )
    set_seed(0 if info is None else info.trial.trial_seed)
    with resolute.core.init() as context:
        callback = ResoluteCallback(context, arguments)
        trainer = Trainer(
            model=make_model(hparams["width"]),
            args=arguments,
            train_dataset=Samples(0, TRAINING_SAMPLES),
            eval_dataset=Samples(TRAINING_SAMPLES, VALIDATION_SAMPLES),
            callbacks=[callback],
        )
        trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", action="store_true", help="train one batch only")
    test = parser.parse_args().test
    # One process, so any directory will do; several need one that all of them see.
    with tempfile.TemporaryDirectory() as output:
        train(output, test=test)
