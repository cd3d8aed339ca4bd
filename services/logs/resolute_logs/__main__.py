"""``python -m resolute_logs`` serves logs alone."""

from resolute_logs.blueprint import BLUEPRINT
from resolute_serving.server.bootstrap import main

if __name__ == "__main__":
    main(BLUEPRINT)
