"""TensorBoard files written and uploaded by the script itself, and the profiler of the Core API."""

import argparse
import os

from torch.utils.tensorboard import SummaryWriter

import determined as det

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
args = parser.parse_args()
assert os.environ["WHERE"] == "somewhere"
assert os.environ["HOOKED"] == "yes"
with det.core.init(tensorboard_mode=det.core.TensorboardMode.MANUAL) as core_context:
    core_context.profiler.on(sampling_interval=1, samples_per_report=1)
    writer = SummaryWriter(core_context.train.get_tensorboard_path())
    for step in range(1, args.steps + 1):
        writer.add_scalar("loss", 1 / step, step)
        core_context.train.report_training_metrics(step, {"loss": 1 / step})
    writer.close()
    core_context.train.upload_tensorboard_files(selector=lambda path: "tfevents" in str(path))
    core_context.profiler.off()
    for op in core_context.searcher.operations():
        core_context.train.report_validation_metrics(args.steps, {"loss": 0.2})
        op.report_completed(0.2)
