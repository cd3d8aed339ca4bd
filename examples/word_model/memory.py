"""What the network remembers between batches."""

from resolute.pytorch import PyTorchCallback


class Memory(PyTorchCallback):
    """The hidden state of the network, which begins anew with the text and is kept in checkpoints."""

    def __init__(self):
        self.hidden = None

    def on_training_epoch_start(self, epoch_idx):
        self.hidden = None

    def state_dict(self):
        return {"hidden": self.hidden}

    def load_state_dict(self, state_dict):
        self.hidden = state_dict["hidden"]
