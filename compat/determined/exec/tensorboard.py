"""Starts TensorBoard as ``resolute tensorboard`` does: ``python3 -m determined.exec.tensorboard``."""

import sys

from resolute.cli import tensorboard
from resolute.cli.main import run

if __name__ == "__main__":
    sys.exit(run(["tensorboard", *sys.argv[1:]], program="resolute"))

sys.modules[__name__] = tensorboard
