"""A script of Lightning: its trainer owns the loop."""

import logging
import warnings

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(16, 1)

    def training_step(self, batch, _):
        return self.model(batch[0]).square().mean()

    def validation_step(self, batch, _):
        self.log("val", self.model(batch[0]).square().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(200, 16)), batch_size=10)
trainer = lightning.Trainer(
    max_epochs=3,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    accelerator="cpu",
)
trainer.fit(Lit(), loader, loader)
