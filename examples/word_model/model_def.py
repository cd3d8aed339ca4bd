"""A recurrent network that predicts the next word."""

import torch
from columns import Columns, Windows
from memory import Memory
from text import Corpus
from torch import nn

from resolute import pytorch
from resolute.pytorch import LRScheduler


class WordTrial(pytorch.PyTorchTrial):
    """Hyperparameters: `lr`, `window`, `vocabulary`, `width`, `dropout` and `global_batch_size`."""

    def __init__(self, context):
        self.context = context
        self.corpus = Corpus(context.get_hparam("vocabulary"))
        self.window = context.get_hparam("window")
        network = WordNetwork(
            context.get_hparam("vocabulary"), context.get_hparam("width"), context.get_hparam("dropout")
        )
        self.model = context.wrap_model(network)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)
        decay = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.7)
        context.wrap_lr_scheduler(decay, LRScheduler.StepMode.STEP_EVERY_EPOCH)
        self.memory = Memory()

    def build_training_data_loader(self):
        windows = Windows(self.corpus.training, self.window)
        rows, slots = self.context.get_per_slot_batch_size(), self.context.distributed.size
        return pytorch.DataLoader(windows, batch_sampler=Columns(windows, rows=rows, slots=slots))

    def build_validation_data_loader(self):
        windows = Windows(self.corpus.validation, self.window)
        return pytorch.DataLoader(windows, batch_sampler=Columns(windows, rows=16, slots=1))

    def build_callbacks(self):
        return {"memory": self.memory}

    def train_batch(self, batch, epoch_idx, batch_idx):
        words, following = batch
        scores, hidden = self.model(words, self.memory.hidden)
        # What was read is remembered; gradients do not go back beyond this window.
        self.memory.hidden = hidden.detach()
        loss = loss_of(scores, following)
        self.context.backward(loss)
        self.context.step_optimizer(
            self.optimizer, clip_grads=lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.5)
        )
        return {"loss": loss, "perplexity": loss.detach().exp()}

    def evaluate_batch(self, batch):
        words, following = batch
        scores, _ = self.model(words, None)
        return {"validation_loss": loss_of(scores, following)}


class WordNetwork(nn.Module):
    def __init__(self, vocabulary, width, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width, vocabulary)

    def forward(self, words, hidden):
        read, hidden = self.recurrent(self.dropout(self.embedding(words)), hidden)
        return self.output(self.dropout(read)), hidden


def loss_of(scores, following):
    return nn.functional.cross_entropy(scores.flatten(end_dim=1), following.flatten())
