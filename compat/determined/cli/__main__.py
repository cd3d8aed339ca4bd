"""Runs the command line: ``python3 -m determined.cli``."""

from determined.cli import main

if __name__ == "__main__":
    main()
