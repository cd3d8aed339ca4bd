"""Serves the cluster of $RESOLUTE_HOME; `resolute up --detach` starts this."""

import resolute_serving.observability.core_log  # noqa: F401 - before gRPC is imported
from resolute_embedded.cli import run_up

if __name__ == "__main__":
    run_up()
