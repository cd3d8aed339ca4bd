"""The command line, for programs that call it."""

from resolute.cli.main import main
