"""Stage 1: report metrics.

What is new since stage 0: `core.init` around everything, and two kinds of reports.
"""

import logging
import time

import determined as det

log = logging.getLogger("core_api")


def main(core_context):
    x = 0
    for batch in range(100):
        x += 1
        time.sleep(0.05)
        steps_completed = batch + 1
        if steps_completed % 10 == 0:
            log.info("after %d steps x is %d", steps_completed, x)
            # NEW: a report costs microseconds, it only appends to a file of this machine.
            core_context.train.report_training_metrics(steps_completed=steps_completed, metrics={"x": x})

    # NEW: metrics of a validation; the experiment's searcher.metric is one of them.
    core_context.train.report_validation_metrics(steps_completed=steps_completed, metrics={"x": x})


if __name__ == "__main__":
    # NEW: with this format the cluster knows the level of each line, so that logs can be filtered by it.
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    log.debug("below the level, so not shown")
    log.error("an error to find in the log with --level ERROR; nothing is wrong")

    # NEW: everything that uses the Core API happens inside of this block.
    with det.core.init() as core_context:
        main(core_context)
