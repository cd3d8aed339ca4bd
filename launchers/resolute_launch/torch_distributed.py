"""Runs ``layers/torch_distributed`` under its documented name."""

import sys

from resolute_launch.layers import torch_distributed

if __name__ == "__main__":
    sys.exit(torch_distributed.main())

sys.modules[__name__] = torch_distributed
