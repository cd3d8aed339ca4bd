"""The backends of a rank.

They choose the device and mixed precision, and exchange gradients with other ranks by torch.distributed or
Horovod.
"""

from resolute.pytorch.backends.gradient_exchange import DistributedModel

# Whole models that were pickled before 0.1.0 name their class in this module.
__all__ = ["DistributedModel"]
