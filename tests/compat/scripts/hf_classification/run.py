"""Hugging Face's Trainer on a classifier whose own arguments give its length in epochs; accuracy decides."""

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import determined as det
from determined.transformers import DetCallback


class Sentences(torch.utils.data.Dataset):
    """The label is whether the first word is of the upper half of the vocabulary."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        words = [(index * 7 + place) % 32 for place in range(6)]
        return {"input_ids": words, "attention_mask": [1] * 6, "labels": int(words[0] >= 16)}


def compute_metrics(predicted):
    logits, labels = predicted
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def main(core_context, hparams):
    network = BertConfig(
        vocab_size=32, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    arguments = TrainingArguments(
        output_dir="output",
        per_device_train_batch_size=hparams["global_batch_size"],
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="epoch",
        use_cpu=True,
        report_to="none",
        **hparams["training_arguments"],
    )
    trainer = Trainer(
        model=BertForSequenceClassification(network),
        args=arguments,
        train_dataset=Sentences(),
        eval_dataset=Sentences(),
        compute_metrics=compute_metrics,
    )
    trainer.add_callback(DetCallback(core_context, arguments))
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    hparams = det.get_cluster_info().trial.hparams
    distributed = det.core.DistributedContext.from_torch_distributed()
    with det.core.init(distributed=distributed) as core_context:
        main(core_context, hparams)
