"""Two models, two optimizers, a scheduler stepped by hand, evaluate_full_dataset, TensorBoard."""

import torch
import torch.nn.functional as F
from torch import nn

from determined.pytorch import DataLoader, LRScheduler, PyTorchTrial, PyTorchTrialContext


class GANTrial(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext):
        self.context = context
        self.logger = context.get_tensorboard_writer()
        latent, lr = context.get_hparam("latent_dim"), context.get_hparam("lr")
        self.generator = context.wrap_model(nn.Sequential(nn.Linear(latent, 8), nn.ReLU(), nn.Linear(8, 2)))
        self.discriminator = context.wrap_model(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)))
        self.opt_g = context.wrap_optimizer(torch.optim.Adam(self.generator.parameters(), lr=lr))
        self.opt_d = context.wrap_optimizer(torch.optim.Adam(self.discriminator.parameters(), lr=lr))
        self.sched = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.ReduceLROnPlateau(self.opt_g), LRScheduler.StepMode.MANUAL_STEP
        )

    def build_training_data_loader(self):
        return DataLoader(torch.randn(16, 2), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self):
        return DataLoader(torch.randn(8, 2), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        real = batch
        noise = self.context.to_device(torch.randn(len(real), self.context.get_hparam("latent_dim")))
        for parameter in self.discriminator.parameters():
            parameter.requires_grad_(False)
        wanted = self.discriminator(self.generator(noise))
        g_loss = F.binary_cross_entropy_with_logits(wanted, torch.ones_like(wanted))
        self.context.backward(g_loss)
        self.context.step_optimizer(self.opt_g)
        for parameter in self.discriminator.parameters():
            parameter.requires_grad_(True)
        judged = self.discriminator(torch.cat([real, self.generator(noise).detach()]))
        labels = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
        d_loss = F.binary_cross_entropy_with_logits(judged, labels)
        self.context.backward(d_loss)
        self.context.step_optimizer(self.opt_d)
        if self.context.is_epoch_end():
            self.sched.step(g_loss.item())
            self.logger.add_scalar("epoch/g_loss", g_loss.item(), self.context.current_train_epoch())
        return {"loss": d_loss, "g_loss": g_loss, "d_loss": d_loss}

    def evaluate_full_dataset(self, data_loader):
        scores = [self.discriminator(batch).mean() for batch in data_loader]
        return {"loss": float(sum(scores) / len(scores)) ** 2}
