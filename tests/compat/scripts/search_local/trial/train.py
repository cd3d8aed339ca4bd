"""The trial that the search asks for."""

import determined as det

if __name__ == "__main__":
    lr = det.get_cluster_info().trial.hparams["lr"]
    with det.core.init() as core_context:
        for op in core_context.searcher.operations():
            core_context.train.report_validation_metrics(op.length, {"loss": lr / op.length})
            op.report_completed(lr / op.length)
