"""Arguments and defaults of the documented members of ``determined.pytorch`` and ``.transformers``."""

from __future__ import annotations

import enum
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
DOCUMENTED = """
pytorch.init(*, hparams=None, exp_conf=None, distributed=None, aggregation_frequency=1, \
enable_tensorboard_logging=True)
pytorch.Trainer(trial, context)
pytorch.Trainer.configure_profiler(sync_timings=True, enabled=False, begin_on_batch=0, end_after_batch=None)
pytorch.Trainer.fit(checkpoint_period=None, validation_period=None, max_length=None, \
reporting_period=Batch(100), checkpoint_policy='best', latest_checkpoint=None, step_zero_validation=False, \
test_mode=False, profiling_enabled=False)
pytorch.Batch(value)
pytorch.Epoch(value)
pytorch.load_trial_from_checkpoint_path(path, trial_class=None, trial_kwargs=None, torch_load_kwargs=None, \
**kwargs)
pytorch.CheckpointLoadContext(hparams=None, exp_conf=None)

pytorch.PyTorchTrial(context)
pytorch.PyTorchTrial.train_batch(batch, epoch_idx, batch_idx)
pytorch.PyTorchTrial.build_training_data_loader()
pytorch.PyTorchTrial.build_validation_data_loader()
pytorch.PyTorchTrial.evaluate_batch(batch, batch_idx)
pytorch.PyTorchTrial.evaluate_full_dataset(data_loader)
pytorch.PyTorchTrial.evaluation_reducer()
pytorch.PyTorchTrial.build_callbacks()
pytorch.PyTorchTrial.get_batch_length(batch)

pytorch.PyTorchTrialContext(core_context, trial_seed, hparams, slots_per_trial, num_gpus, exp_conf, \
aggregation_frequency, steps_completed, managed_training, debug_enabled, enable_tensorboard_logging=True)
pytorch.PyTorchTrialContext.from_config(config)
pytorch.PyTorchTrialContext.wrap_model(model)
pytorch.PyTorchTrialContext.wrap_optimizer(optimizer, backward_passes_per_step=1, fp16_compression=None, \
average_aggregated_gradients=None)
pytorch.PyTorchTrialContext.wrap_lr_scheduler(lr_scheduler, step_mode, frequency=1)
pytorch.PyTorchTrialContext.wrap_scaler(scaler)
pytorch.PyTorchTrialContext.configure_apex_amp(models, optimizers, enabled=True, opt_level='O1', \
cast_model_type=None, patch_torch_functions=None, keep_batchnorm_fp32=None, master_weights=None, \
loss_scale=None, cast_model_outputs=None, num_losses=1, verbosity=1, min_loss_scale=None, \
max_loss_scale=16777216.0)
pytorch.PyTorchTrialContext.backward(loss, gradient=None, retain_graph=False, create_graph=False)
pytorch.PyTorchTrialContext.step_optimizer(optimizer, clip_grads=None, auto_zero_grads=True, scaler=None)
pytorch.PyTorchTrialContext.to_device(data)
pytorch.PyTorchTrialContext.set_profiler(*args, **kwargs)
pytorch.PyTorchTrialContext.wrap_reducer(reducer, name=None, for_training=True, for_validation=True)
pytorch.PyTorchTrialContext.reset_reducers(for_training=None)
pytorch.PyTorchTrialContext.reduce_metrics(for_training)
pytorch.PyTorchTrialContext.get_hparam(name)
pytorch.PyTorchTrialContext.get_hparams()
pytorch.PyTorchTrialContext.get_experiment_config()
pytorch.PyTorchTrialContext.get_data_config()
pytorch.PyTorchTrialContext.get_global_batch_size()
pytorch.PyTorchTrialContext.get_per_slot_batch_size()
pytorch.PyTorchTrialContext.get_experiment_id()
pytorch.PyTorchTrialContext.get_trial_id()
pytorch.PyTorchTrialContext.get_trial_seed()
pytorch.PyTorchTrialContext.get_initial_batch()
pytorch.PyTorchTrialContext.get_stop_requested()
pytorch.PyTorchTrialContext.set_stop_requested(stop_requested)
pytorch.PyTorchTrialContext.get_enable_tensorboard_logging()
pytorch.PyTorchTrialContext.set_enable_tensorboard_logging(enable_tensorboard_logging)
pytorch.PyTorchTrialContext.get_tensorboard_path()
pytorch.PyTorchTrialContext.get_tensorboard_writer()
pytorch.PyTorchTrialContext.is_epoch_start()
pytorch.PyTorchTrialContext.is_epoch_end()
pytorch.PyTorchTrialContext.current_train_epoch()
pytorch.PyTorchTrialContext.current_train_batch()

pytorch.PyTorchExperimentalContext.use_amp()
pytorch.PyTorchExperimentalContext.disable_dataset_reproducibility_checks()
pytorch.PyTorchExperimentalContext.disable_auto_to_device()
pytorch.PyTorchExperimentalContext.wrap_reducer(reducer, name=None, for_training=True, for_validation=True)
pytorch.PyTorchExperimentalContext.reset_reducers()
pytorch.PyTorchExperimentalContext.reduce_metrics(for_training)

pytorch.DataLoader(dataset, batch_size=1, shuffle=False, sampler=None, batch_sampler=None, num_workers=0, \
collate_fn=None, pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, \
multiprocessing_context=None, generator=None, *, prefetch_factor=None, persistent_workers=False)
pytorch.DataLoader.get_data_loader(repeat=False, skip=0, num_replicas=1, rank=0)
pytorch.adapt_batch_sampler(batch_sampler, repeat=False, skip=0, num_replicas=1, rank=0)
pytorch.data_length(data)
pytorch.to_device(data, device, warned_types=None)
pytorch.samplers.RepeatSampler(sampler)
pytorch.samplers.RepeatBatchSampler(batch_sampler)
pytorch.samplers.DistributedSampler(sampler, num_workers, rank)
pytorch.samplers.DistributedBatchSampler(batch_sampler, num_workers, rank)
pytorch.samplers.SkipSampler(sampler, skip)
pytorch.samplers.SkipBatchSampler(batch_sampler, skip)
pytorch.samplers.ReproducibleShuffleSampler(sampler, seed)
pytorch.samplers.ReproducibleShuffleBatchSampler(batch_sampler, seed)

pytorch.LRScheduler(scheduler, step_mode, frequency=1)
pytorch.LRScheduler.step(*args, **kwargs)
pytorch.LRScheduler.get_last_lr()
pytorch.LRScheduler.state_dict()
pytorch.LRScheduler.load_state_dict(state_dict)
pytorch.MetricReducer.reset()
pytorch.MetricReducer.per_slot_reduce()
pytorch.MetricReducer.cross_slot_reduce(per_slot_metrics)
pytorch._simple_reduce_metrics(reducer, metrics, num_batches=None)

pytorch.PyTorchCallback.on_trial_startup(first_batch_idx, checkpoint_uuid)
pytorch.PyTorchCallback.on_training_start()
pytorch.PyTorchCallback.on_training_epoch_start(epoch_idx)
pytorch.PyTorchCallback.on_training_epoch_end(epoch_idx)
pytorch.PyTorchCallback.on_training_workload_end(avg_metrics, batch_metrics)
pytorch.PyTorchCallback.on_validation_start()
pytorch.PyTorchCallback.on_validation_epoch_start()
pytorch.PyTorchCallback.on_validation_epoch_end(outputs)
pytorch.PyTorchCallback.on_validation_end(metrics)
pytorch.PyTorchCallback.on_checkpoint_load_start(checkpoint)
pytorch.PyTorchCallback.on_checkpoint_save_start(checkpoint)
pytorch.PyTorchCallback.on_checkpoint_end(checkpoint_dir)
pytorch.PyTorchCallback.on_checkpoint_write_end(checkpoint_dir)
pytorch.PyTorchCallback.on_checkpoint_upload_end(uuid)
pytorch.PyTorchCallback.on_trial_shutdown()
pytorch.PyTorchCallback.state_dict()
pytorch.PyTorchCallback.load_state_dict(state_dict)

pytorch.experimental.torch_batch_process(batch_processor_cls, dataset, batch_size=None, max_batches=None, \
checkpoint_interval=5, dataloader_kwargs=None, distributed_context=None)
pytorch.experimental.TorchBatchProcessor(context)
pytorch.experimental.TorchBatchProcessor.process_batch(batch, batch_idx)
pytorch.experimental.TorchBatchProcessor.on_checkpoint_start()
pytorch.experimental.TorchBatchProcessor.on_finish()
pytorch.experimental.TorchBatchProcessorContext(core_context, storage_path)
pytorch.experimental.TorchBatchProcessorContext.to_device(data, warned_types=None)
pytorch.experimental.TorchBatchProcessorContext.prepare_model_for_inference(model)
pytorch.experimental.TorchBatchProcessorContext.upload_path()
pytorch.experimental.TorchBatchProcessorContext.report_metrics(group, steps_completed, metrics)
pytorch.experimental.TorchBatchProcessorContext.report_task_using_model_version(model_version)
pytorch.experimental.TorchBatchProcessorContext.report_task_using_checkpoint(checkpoint)

pytorch.deepspeed.init(*, hparams=None, exp_conf=None, distributed=None, enable_tensorboard_logging=True)
pytorch.deepspeed.Trainer(trial, context)
pytorch.deepspeed.Trainer.fit(checkpoint_period=None, validation_period=None, max_length=None, \
reporting_period=Batch(100), checkpoint_policy='best', latest_checkpoint=None, step_zero_validation=False, \
test_mode=False, profiling_enabled=False)
pytorch.deepspeed.overwrite_deepspeed_config(base_ds_config, source_ds_dict)
pytorch.deepspeed.ModelParallelUnit(data_parallel_rank, data_parallel_world_size, should_report_metrics, \
should_build_data_loader)
pytorch.deepspeed.make_data_parallel_mpu(dist_context)
pytorch.deepspeed.make_deepspeed_mpu(topology)
pytorch.deepspeed.DeepSpeedTrial(context)
pytorch.deepspeed.DeepSpeedTrial.train_batch(dataloader_iter, epoch_idx, batch_idx)
pytorch.deepspeed.DeepSpeedTrial.evaluate_batch(dataloader_iter, batch_idx)
pytorch.deepspeed.DeepSpeedTrial.build_training_data_loader()
pytorch.deepspeed.DeepSpeedTrial.build_validation_data_loader()
pytorch.deepspeed.DeepSpeedTrial.build_callbacks()
pytorch.deepspeed.DeepSpeedTrial.save(context, path)
pytorch.deepspeed.DeepSpeedTrial.load(context, load_path)
pytorch.deepspeed.DeepSpeedTrialContext(core_context, trial_seed, hparams, slots_per_trial, num_gpus, \
exp_conf, steps_completed, enable_tensorboard_logging=True)
pytorch.deepspeed.DeepSpeedTrialContext.wrap_model_engine(model)
pytorch.deepspeed.DeepSpeedTrialContext.set_mpu(mpu)
pytorch.deepspeed.DeepSpeedTrialContext.disable_auto_grad_accumulation()
pytorch.deepspeed.DeepSpeedTrialContext.disable_dataset_reproducibility_checks()
pytorch.deepspeed.DeepSpeedTrialContext.to_device(data)
pytorch.deepspeed.DeepSpeedTrialContext.is_epoch_start()
pytorch.deepspeed.DeepSpeedTrialContext.is_epoch_end()
pytorch.deepspeed.DeepSpeedTrialContext.current_train_epoch()
pytorch.deepspeed.DeepSpeedTrialContext.current_train_batch()
pytorch.deepspeed.DeepSpeedTrialContext.set_profiler(*args, **kwargs)
pytorch.deepspeed.DeepSpeedTrialContext.get_enable_tensorboard_logging()
pytorch.deepspeed.DeepSpeedTrialContext.set_enable_tensorboard_logging(enable_tensorboard_logging)
pytorch.deepspeed.DeepSpeedTrialContext.get_tensorboard_path()
pytorch.deepspeed.DeepSpeedTrialContext.get_tensorboard_writer()
pytorch.deepspeed.DeepSpeedTrialContext.get_hparam(name)
pytorch.deepspeed.DeepSpeedTrialContext.get_hparams()
pytorch.deepspeed.DeepSpeedTrialContext.get_experiment_config()
pytorch.deepspeed.DeepSpeedTrialContext.get_data_config()
pytorch.deepspeed.DeepSpeedTrialContext.get_experiment_id()
pytorch.deepspeed.DeepSpeedTrialContext.get_trial_id()
pytorch.deepspeed.DeepSpeedTrialContext.get_trial_seed()
pytorch.deepspeed.DeepSpeedTrialContext.get_initial_batch()
pytorch.deepspeed.DeepSpeedTrialContext.get_stop_requested()
pytorch.deepspeed.DeepSpeedTrialContext.set_stop_requested(stop_requested)
pytorch.deepspeed.DeepSpeedTrialContext.wrap_reducer(reducer, name=None, for_training=True, \
for_validation=True)
pytorch.deepspeed.DeepSpeedTrialContext.reset_reducers(for_training=None)
pytorch.deepspeed.DeepSpeedTrialContext.reduce_metrics(for_training)

transformers.DetCallback(core_context, args, filter_metrics=None, user_data=None)
"""
CALLS = [line for line in DOCUMENTED.splitlines() if line]
OWN = {
    "pytorch.PyTorchTrialContext": {"backend"},
    "pytorch.PyTorchTrialContext.wrap_model": {"ddp_options"},
    "pytorch.PyTorchTrialContext.wrap_optimizer": {"horovod_options"},
    "pytorch.PyTorchTrialContext.autocast_forward_pass": {"autocast_options"},
    "pytorch.PyTorchExperimentalContext.use_amp": {"autocast_options", "scaler_options"},
    "pytorch.DataLoader": {"further"},
    "pytorch.DataLoader.get_data_loader": {"seed"},
    "pytorch.deepspeed.DeepSpeedTrialContext": {"debug_enabled"},
}
"""Arguments beyond the documented ones, by member; each by its name only, and with a default."""


def member(path: str) -> Any:
    """What a dotted name of the documented package stands for."""
    package, *names = path.split(".")
    found: Any = importlib.import_module(f"determined.{package}")
    for name in names:
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("call", CALLS, ids=[call.partition("(")[0] for call in CALLS])
def test_a_member_takes_the_documented_arguments(call: str) -> None:
    path, _, arguments = call.partition("(")
    found = member(path)
    parameters = list(inspect.signature(found).parameters.values())
    extra = {one.name for one in parameters} & OWN.get(path, set())
    assert all(
        (one.kind is one.KEYWORD_ONLY and one.default is not one.empty) or one.kind is one.VAR_KEYWORD
        for one in parameters
        if one.name in extra
    )
    shown = [one.replace(annotation=one.empty) for one in parameters if one.name not in {"self", *extra}]
    assert str(inspect.Signature(shown)) == f"({arguments}"


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("pytorch.Reducer", {"AVG": 1, "SUM": 2, "MAX": 3, "MIN": 4}),
        (
            "pytorch.LRScheduler.StepMode",
            {"STEP_EVERY_EPOCH": 1, "STEP_EVERY_BATCH": 2, "MANUAL_STEP": 3, "STEP_EVERY_OPTIMIZER_STEP": 4},
        ),
    ],
)
def test_an_enumeration_has_the_documented_values(path: str, values: dict[str, int]) -> None:
    found: type[enum.Enum] = member(path)
    assert {one.name: one.value for one in found} == values


@pytest.mark.parametrize(
    ("path", "abstract"),
    [
        (
            "pytorch.PyTorchTrial",
            {"__init__", "train_batch", "build_training_data_loader", "build_validation_data_loader"},
        ),
        (
            "pytorch.deepspeed.DeepSpeedTrial",
            {
                "__init__",
                "train_batch",
                "evaluate_batch",
                "build_training_data_loader",
                "build_validation_data_loader",
            },
        ),
        ("pytorch.MetricReducer", {"reset", "per_slot_reduce", "cross_slot_reduce"}),
        ("pytorch.experimental.TorchBatchProcessor", {"__init__", "process_batch"}),
    ],
)
def test_a_class_leaves_the_documented_methods_to_its_children(path: str, abstract: set[str]) -> None:
    assert member(path).__abstractmethods__ == abstract


def test_a_trial_that_overrides_nothing_more_has_the_documented_defaults() -> None:
    pytorch = member("pytorch")
    unmade: Any = type("Unmade", (pytorch.PyTorchTrial,), {})
    trial: Any = object.__new__(type("Made", (unmade,), dict.fromkeys(unmade.__abstractmethods__)))
    assert trial.evaluation_reducer() is pytorch.Reducer.AVG
    assert trial.build_callbacks() == {}
    assert pytorch.PyTorchTrial.trial_context_class is pytorch.PyTorchTrialContext
    assert pytorch.PyTorchCallback().state_dict() == {}
