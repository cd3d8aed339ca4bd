"""Hugging Face's Trainer with DetCallback; length in batches, metrics filtered, user data in checkpoints."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

import determined as det
from determined.transformers import DetCallback


class Bytes(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        ids = torch.arange(index, index + 8)
        return {"input_ids": ids, "labels": ids}


def main(core_context, hparams):
    config = GPT2Config(
        n_layer=1, n_head=1, n_embd=8, n_positions=8, vocab_size=32, bos_token_id=0, eos_token_id=0
    )
    arguments = TrainingArguments(
        output_dir="output",
        max_steps=4,
        per_device_train_batch_size=2,
        logging_steps=2,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        use_cpu=True,
        report_to="none",
        **hparams["training_arguments"],
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config), args=arguments, train_dataset=Bytes(), eval_dataset=Bytes()
    )
    callback = DetCallback(
        core_context, arguments, filter_metrics=["loss", "eval_loss"], user_data={"preprocessing": "none"}
    )
    trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)


if __name__ == "__main__":
    info = det.get_cluster_info()
    distributed = det.core.DistributedContext.from_torch_distributed()
    with det.core.init(distributed=distributed) as core_context:
        main(core_context, info.trial.hparams)
