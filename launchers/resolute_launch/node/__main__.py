"""Runs the shim of this node: ``python -m resolute_launch.node FOLDER RANK``."""

import sys

from resolute_launch.node.shim import main

sys.exit(main(sys.argv[1:]))
