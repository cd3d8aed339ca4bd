"""Starts the workers by torch.distributed.run: ``python3 -m determined.launch.torch_distributed``."""

import sys
from typing import Any

from determined._older_names import attribute
from resolute_launch.layers.torch_distributed import main


def __getattr__(name: str) -> Any:
    return attribute(__name__, name)


if __name__ == "__main__":
    sys.exit(main())
