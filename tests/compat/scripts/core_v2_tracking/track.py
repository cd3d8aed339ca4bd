"""core_v2 in a managed trial, where its config is ignored."""

from determined.experimental import core_v2


def main():
    core_v2.init(
        config=core_v2.Config(
            name="unmanaged-1-singleton",
            hparams={"lr": 0.1},
            external_experiment_id="night",
            external_trial_id="first",
        )
    )
    assert core_v2.info.trial.hparams["lr"] == 0.5
    for i in range(3):
        core_v2.train.report_training_metrics(steps_completed=i, metrics={"loss": 1 / (i + 1)})
        if core_v2.preempt.should_preempt():
            break
    with core_v2.checkpoint.store_path({"steps_completed": 3}) as (path, _):
        (path / "model").write_text("m")
    core_v2.train.report_validation_metrics(steps_completed=3, metrics={"loss": 0.3})
    print("view at", core_v2.url_reverse_webui_exp_view())
    core_v2.close()


if __name__ == "__main__":
    main()
