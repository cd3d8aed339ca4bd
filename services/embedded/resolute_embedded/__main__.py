"""Serves the cluster of $RESOLUTE_HOME; `resolute up --detach` starts this."""

from resolute_embedded.cli import run_up

if __name__ == "__main__":
    run_up()
