"""The Core API of 0.38: no operations; time metric, progress, metadata, an alert."""

import determined as det
from determined import core


def main():
    info = det.get_cluster_info()
    lr = info.trial.hparams["lr"]
    with core.init(preempt_mode=core.PreemptMode.ChiefOnly) as ctx:
        ctx.train.set_metadata({"dataset": "digits", "nested": {"lr": lr}})
        assert ctx.train.get_metadata()["nested"]["lr"] == lr
        for batches in range(1, 9):
            ctx.train.report_metrics("training", batches, {"loss": lr / batches, "batches": batches})
            if batches % 4 == 0:
                ctx.train.report_metrics(
                    "validation", batches, {"validation_loss": lr / batches, "batches": batches}
                )
                with ctx.checkpoint.store_path({"steps_completed": batches}) as (path, _):
                    (path / "lr").write_text(str(lr))
            ctx.train.report_progress(batches / 8)
            if ctx.preempt.should_preempt():
                return
        ctx.alert(title="trained", description="it ended", level="info")


if __name__ == "__main__":
    main()
