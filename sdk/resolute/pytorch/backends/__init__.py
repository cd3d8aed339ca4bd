"""What a rank computes with: its device, mixed precision.

And the exchange of gradients with other ranks by torch.distributed or Horovod.
"""
