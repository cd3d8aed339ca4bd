"""Finds a container of a run prepared: ``python3 -m determined.exec.prep_container``."""

import sys

from resolute_launch.exec import prep_container

if __name__ == "__main__":
    sys.exit(prep_container.main())

sys.modules[__name__] = prep_container
