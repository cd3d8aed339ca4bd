"""A generator of digits and its critic, trained against each other."""

import torch
from data import load_images
from samples import SIDE, SampleSheet
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from resolute import pytorch

PIXELS = SIDE * SIDE


class GanTrial(pytorch.PyTorchTrial):
    """Hyperparameters: `lr`, `noise`, `hidden` and `global_batch_size`."""

    def __init__(self, context):
        self.context = context
        self.noise, hidden = context.get_hparam("noise"), context.get_hparam("hidden")
        self.training_images, self.validation_images = load_images()
        self.generator = context.wrap_model(layers(self.noise, hidden, PIXELS, nn.Tanh()))
        self.critic = context.wrap_model(layers(PIXELS, hidden, 1, nn.Identity()))
        self.generator_optimizer = context.wrap_optimizer(self.make_optimizer(self.generator))
        self.critic_optimizer = context.wrap_optimizer(self.make_optimizer(self.critic))

    def make_optimizer(self, model):
        return torch.optim.Adam(model.parameters(), lr=self.context.get_hparam("lr"), betas=(0.5, 0.999))

    def build_training_data_loader(self):
        size = self.context.get_per_slot_batch_size()
        return pytorch.DataLoader(self.training_images, batch_size=size, shuffle=True, drop_last=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.validation_images, batch_size=99)

    def build_callbacks(self):
        return {"samples": SampleSheet(self.generate_from, self.noise)}

    def train_batch(self, batch, epoch_idx, batch_idx):
        (images,) = batch
        real = images.flatten(start_dim=1)

        # The critic learns to tell real from generated. It sees both in one pass.
        self.critic.requires_grad_(True)
        fake = self.generator(self.draw(len(real)))
        seen = torch.cat([real, fake.detach()])
        is_real = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)]).to(seen.device)
        critic_loss = binary_cross_entropy_with_logits(self.critic(seen), is_real)
        self.context.backward(critic_loss)
        self.context.step_optimizer(self.critic_optimizer)

        # The generator learns what the critic takes for real; the critic only passes gradients on.
        self.critic.requires_grad_(False)
        generator_loss = binary_cross_entropy_with_logits(
            self.critic(fake), torch.ones_like(is_real[: len(real)])
        )
        self.context.backward(generator_loss)
        self.context.step_optimizer(self.generator_optimizer)
        return {"critic_loss": critic_loss, "generator_loss": generator_loss}

    def evaluate_batch(self, batch):
        (images,) = batch
        real = images.flatten(start_dim=1)
        fake = self.generator(self.draw(len(real)))
        taken_for_real = [(self.critic(pixels) > 0).float().mean() for pixels in (real, fake)]
        # How far the pixels of generated digits are, on average, from those of real ones.
        distance = (real.mean(dim=0) - fake.mean(dim=0)).abs().mean()
        return {
            "real_accepted": taken_for_real[0],
            "fake_accepted": taken_for_real[1],
            "pixel_distance": distance,
        }

    def draw(self, count):
        return torch.randn(count, self.noise, device=self.context.device)

    def generate_from(self, noise):
        return self.generator(noise.to(self.context.device)).reshape(-1, SIDE, SIDE)


def layers(inputs, hidden, outputs, last):
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, hidden),
        nn.LeakyReLU(0.2),
        nn.Linear(hidden, outputs),
        last,
    )
