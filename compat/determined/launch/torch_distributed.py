"""Starts the workers by torch.distributed.run: ``python3 -m determined.launch.torch_distributed``."""

import sys

from resolute_launch.layers.torch_distributed import main

if __name__ == "__main__":
    sys.exit(main())
