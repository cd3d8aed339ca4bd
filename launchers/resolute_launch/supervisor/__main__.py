"""Runs the supervisor of one run: ``python3 -m resolute_launch.supervisor``."""

import sys

from resolute_launch.supervisor.main import main

sys.exit(main())
