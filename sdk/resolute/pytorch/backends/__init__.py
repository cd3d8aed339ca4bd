"""What a rank computes with.

Its device, mixed precision, and the exchange of gradients with other ranks by torch.distributed or Horovod.
"""
