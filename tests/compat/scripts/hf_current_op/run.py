"""Hugging Face's Trainer of 0.23 to 0.35: the operation that the callback is at is given to DeepSpeed's autotuning."""

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from determined import core
from determined.pytorch import dsat
from determined.transformers import DetCallback

config = GPT2Config(
    n_layer=1, n_head=1, n_embd=8, n_positions=4, vocab_size=8, bos_token_id=0, eos_token_id=0
)
rows = [{"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]}] * 8
arguments = TrainingArguments("output", max_steps=2, use_cpu=True, report_to="none")
with core.init() as context:
    callback = DetCallback(context, arguments)
    model = GPT2LMHeadModel(config)
    data = {"train_dataset": rows, "eval_dataset": rows}
    trainer = Trainer(model=model, args=arguments, callbacks=[callback], **data)
    with dsat.dsat_reporting_context(context, op=callback.current_op):
        trainer.train()
