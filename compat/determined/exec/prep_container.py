"""Does nothing, because the container is already prepared: ``python3 -m determined.exec.prep_container``."""

import sys

from resolute_launch.exec.prep_container import main

if __name__ == "__main__":
    sys.exit(main())
