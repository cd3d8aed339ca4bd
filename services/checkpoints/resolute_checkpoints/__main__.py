"""``python -m resolute_checkpoints`` serves the checkpoint registry alone."""

import resolute_serving.observability.core_log  # noqa: F401 - before gRPC is imported
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_serving.server.bootstrap import main

if __name__ == "__main__":
    main(BLUEPRINT)
