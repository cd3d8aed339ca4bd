"""The trial in a notebook: open this file as one, or copy its cells. It needs no cluster."""

# %% Train for an epoch
import torch
from model_def import DigitsTrial
from train import DEFAULT_HPARAMS

from resolute import pytorch


class Noting(pytorch.PyTorchCallback):
    """Keeps the identifier of the latest checkpoint, and what the latest validation gave."""

    def on_checkpoint_upload_end(self, uuid):
        self.checkpoint = uuid

    def on_validation_end(self, metrics):
        self.metrics = metrics


class NotedTrial(DigitsTrial):
    def __init__(self, context):
        super().__init__(context)
        self.noting = Noting()

    def build_callbacks(self):
        return {"noting": self.noting}


with pytorch.init(hparams=DEFAULT_HPARAMS) as context:
    first = NotedTrial(context)
    pytorch.Trainer(first, context).fit(max_length=pytorch.Epoch(1))
print(first.noting.metrics)

# %% Go on for another one
with pytorch.init(hparams=DEFAULT_HPARAMS) as context:
    second = NotedTrial(context)
    trainer = pytorch.Trainer(second, context)
    trainer.fit(max_length=pytorch.Epoch(2), latest_checkpoint=first.noting.checkpoint)
print(second.noting.metrics)

# %% Try it on an image
images, digits = first.validation_split[:1]
second.model.eval()
with torch.no_grad():
    print("guessed", second.model(images).argmax().item(), "of", digits.item())
