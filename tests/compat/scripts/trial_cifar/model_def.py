"""A convolutional net whose lengths and periods are epochs of `records_per_epoch`, in a search with early stopping."""

import torch
from torch import nn

from determined.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext, reset_parameters


def error_rate(predictions, labels):
    return 1.0 - float((predictions.argmax(1) == labels.to(torch.long)).sum()) / predictions.shape[0]


class CIFARTrial(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        width = context.get_hparam("width")
        net = nn.Sequential(
            nn.Conv2d(3, width, 3),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(4),
            nn.Dropout2d(context.get_hparam("layer1_dropout")),
            nn.Flatten(),
            nn.Linear(width * 49, 10),
        )
        reset_parameters(net)
        self.model = self.context.wrap_model(net)
        self.optimizer = self.context.wrap_optimizer(
            torch.optim.RMSprop(
                self.model.parameters(),
                lr=self.context.get_hparam("learning_rate"),
                weight_decay=self.context.get_hparam("learning_rate_decay"),
                alpha=0.9,
            )
        )

    def train_batch(self, batch, epoch_idx, batch_idx):
        data, labels = batch
        output = self.model(data)
        loss = nn.functional.cross_entropy(output, labels)
        self.context.backward(loss)
        self.context.step_optimizer(
            self.optimizer, clip_grads=lambda params: nn.utils.clip_grad_norm_(params, 1.0)
        )
        return {"loss": loss, "train_error": error_rate(output, labels)}

    def evaluate_batch(self, batch):
        data, labels = batch
        return {"validation_error": error_rate(self.model(data), labels)}

    def build_training_data_loader(self):
        torch.manual_seed(1)
        images = torch.utils.data.TensorDataset(torch.randn(32, 3, 32, 32), torch.arange(32) % 10)
        return DataLoader(images, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return self.build_training_data_loader()
