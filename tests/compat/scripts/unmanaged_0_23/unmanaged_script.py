"""Detached mode as 0.23 had it: an experiment and a trial made by hand, then a context for them."""

import tempfile

from determined import core
from determined.experimental import Determined, unmanaged

config_text = f"""
name: unmanaged-by-hand
checkpoint_storage:
  type: shared_fs
  host_path: {tempfile.mkdtemp()}
searcher:
  name: single
  metric: loss
  max_length: 1000
entrypoint: unmanaged
hyperparameters:
  lr: 0.1
"""


def main():
    client = Determined()
    exp_id = unmanaged.create_unmanaged_experiment(client, config_text=config_text)
    info = unmanaged.create_unmanaged_trial_cluster_info(
        client, config_text=config_text, exp_id=exp_id, hparams={"lr": 0.1}
    )
    with unmanaged.init(
        unmanaged_info=info, client=client, preempt_mode=core.PreemptMode.WorkersAskChief
    ) as core_context:
        for i in range(5):
            core_context.train.report_training_metrics(steps_completed=i, metrics={"loss": 1 / (i + 1)})
        core_context.train.report_validation_metrics(steps_completed=5, metrics={"loss": 0.1})
    print(unmanaged.url_reverse_webui_exp_view(client, exp_id))
    (trial,) = client.get_experiment(exp_id).list_trials()
    steps = [metrics.steps_completed for metrics in trial.iter_metrics("training")]
    assert steps == list(range(5)), steps


if __name__ == "__main__":
    main()
