"""ASHA over nested hyperparameters; one kind of trial is invalid and says so."""

import determined as det

if __name__ == "__main__":
    info = det.get_cluster_info()
    hparams = info.trial.hparams
    with det.core.init() as core_context:
        if hparams["width"] > 60:
            raise det.InvalidHP("too wide")
        steps = 0
        if info.latest_checkpoint:
            with core_context.checkpoint.restore_path(info.latest_checkpoint) as path:
                steps = int((path / "steps").read_text())
        for op in core_context.searcher.operations():
            while steps < op.length:
                steps += 1
                core_context.train.report_training_metrics(steps, {"score": hparams["width"] * steps})
                op.report_progress(steps)
            with core_context.checkpoint.store_path({"steps_completed": steps}) as (path, _):
                (path / "steps").write_text(str(steps))
            score = hparams["width"] + hparams["optimizer"]["momentum"]
            core_context.train.report_validation_metrics(steps, {"score": score})
            op.report_completed(score)
            if core_context.preempt.should_preempt():
                break
