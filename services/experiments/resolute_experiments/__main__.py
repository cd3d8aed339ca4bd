"""``python -m resolute_experiments`` serves experiments alone."""

from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.server.bootstrap import main

if __name__ == "__main__":
    main(BLUEPRINT)
