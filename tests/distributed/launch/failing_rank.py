"""A script of which one rank fails at once, and the other would continue forever."""

import os
import threading

if os.environ.get("RANK", os.environ.get("HOROVOD_RANK")) == "1":
    raise ValueError("rank 1 finds no data")
threading.Event().wait()
