"""A Lightning Trainer that logs to the cluster by DetLogger."""

import lightning
import torch

from determined.experimental import core_v2
from determined.lightning.experimental import DetLogger


class Line(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        loss = self.layer(batch).pow(2).mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main():
    logger = DetLogger(defaults=core_v2.DefaultConfig(name="lightning"), unmanaged=None)
    assert logger.name == "DetLogger"
    trainer = lightning.Trainer(
        max_steps=4, logger=logger, log_every_n_steps=1, accelerator="cpu", enable_checkpointing=False
    )
    loader = torch.utils.data.DataLoader(torch.ones(8, 1), batch_size=2)
    trainer.fit(Line(), loader)


if __name__ == "__main__":
    main()
