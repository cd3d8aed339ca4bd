"""``python -m resolute_metrics`` serves metrics alone."""

from resolute_metrics.blueprint import BLUEPRINT
from resolute_serving.server.bootstrap import main

if __name__ == "__main__":
    main(BLUEPRINT)
