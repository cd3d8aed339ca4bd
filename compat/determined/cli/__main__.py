"""Runs the command line: ``python3 -m determined.cli``."""

from resolute.cli.main import main

if __name__ == "__main__":
    main()
