"""Stage 0: a training script that knows nothing of any platform.

The model is a single number, and a step of training adds to it. It stands for your own training loop.
"""

import logging
import time

log = logging.getLogger("core_api")


def main():
    x = 0
    for batch in range(100):
        x += 1
        time.sleep(0.05)  # a batch of a real model takes its time, too
        steps_completed = batch + 1
        if steps_completed % 10 == 0:
            log.info("after %d steps x is %d", steps_completed, x)
    log.info("done: x is %d", x)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
