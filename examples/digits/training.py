"""The training itself. Nothing here knows of the platform; all that a resume needs is in its state."""

import torch
from model import DigitsNet
from torch import nn


class Training:
    """A model on its way, and how far it has come.

    One number says how far: `steps`, the batches done. The order of an epoch's images follows from the seed
    and the epoch, so it needs no state; dropout draws from torch's generator, which is part of the state. A
    training that is saved after any batch and loaded elsewhere therefore goes on as if it had never stopped.

    Args:
        hparams: `lr`, `hidden`, `dropout` and `batch_size`.
        train: Split to train on.
        validation: Split to validate on.
        seed: Decides the first weights, the order of images, and dropout.
    """

    def __init__(self, hparams, train, validation, *, seed):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.train = train.to(self.device)
        self.validation = validation.to(self.device)
        self.seed = seed
        self.batch_size = hparams["batch_size"]
        self.batches_per_epoch = -(-len(train) // self.batch_size)
        self.steps = 0

        torch.manual_seed(seed)
        self.model = DigitsNet(hidden=hparams["hidden"], dropout=hparams["dropout"]).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=hparams["lr"])
        self.loss = nn.CrossEntropyLoss()
        self._order = None
        self._order_epoch = None

    @property
    def at_epoch_end(self):
        return self.steps % self.batches_per_epoch == 0

    def train_batch(self):
        """Trains one batch and returns its loss, as a tensor: reading the number is left to who needs it."""
        batch = self._next_batch()
        self.model.train()
        loss = self.loss(self.model(batch.images), batch.digits)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.detach()

    @torch.no_grad()
    def validate(self):
        """Returns the loss and the accuracy on the validation split."""
        self.model.eval()
        scores = self.model(self.validation.images)
        right = (scores.argmax(dim=1) == self.validation.digits).sum().item()
        return {
            "validation_loss": self.loss(scores, self.validation.digits).item(),
            "accuracy": right / len(self.validation),
        }

    def state_dict(self):
        """Everything but the weights: those are worth a file of their own."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "cpu_generator": torch.get_rng_state(),
            "cuda_generators": torch.cuda.get_rng_state_all(),
            "steps": self.steps,
            "seed": self.seed,
        }

    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["cpu_generator"])
        if state["cuda_generators"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda_generators"])
        self.steps = state["steps"]
        self.seed = state["seed"]

    def _next_batch(self):
        epoch, batch = divmod(self.steps, self.batches_per_epoch)
        if self._order_epoch != epoch:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            self._order = torch.randperm(len(self.train), generator=generator)
            self._order_epoch = epoch
        start = batch * self.batch_size
        return self.train[self._order[start : start + self.batch_size].to(self.device)]
