"""Fields that are accepted but change nothing here."""

from typing import Any

import pytest
from unit.config.conftest import Accept

from resolute_config.ineffective_fields import LOCAL_PROCESSES, Ineffective, ineffective_fields
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config

ASHA = {
    "name": "adaptive_asha",
    "metric": "m",
    "max_trials": 4,
    "max_time": 9,
    "time_metric": "t",
    "stop_once": True,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "environment.image": {"environment": {"image": "me/mine"}},
    "environment.ports": {"environment": {"ports": {"web": 80}}},
    "environment.proxy_ports": {"environment": {"proxy_ports": [{"proxy_port": 80}]}},
    "environment.force_pull_image": {"environment": {"force_pull_image": True}},
    "environment.registry_auth": {"environment": {"registry_auth": {"username": "me"}}},
    "environment.add_capabilities": {"environment": {"add_capabilities": ["SYS_ADMIN"]}},
    "environment.drop_capabilities": {"environment": {"drop_capabilities": ["SYS_ADMIN"]}},
    "environment.pod_spec": {"environment": {"pod_spec": {"spec": {}}}},
    "bind_mounts": {"bind_mounts": [{"host_path": "/a", "container_path": "/b"}]},
    "resources.devices": {"resources": {"devices": ["/dev/a:/dev/a"]}},
    "resources.shm_size": {"resources": {"shm_size": "1 GiB"}},
    "resources.resource_pool": {"resources": {"resource_pool": "a100"}},
    "resources.is_single_node": {"resources": {"is_single_node": False}},
    "resources.native_parallel": {"resources": {"native_parallel": True}},
    "resources.agent_label": {"resources": {"agent_label": "x"}},
    "checkpoint_storage.access_key": {
        "checkpoint_storage": {"type": "s3", "bucket": "weights", "access_key": "key"}
    },
    "checkpoint_storage.secret_key": {
        "checkpoint_storage": {"type": "s3", "bucket": "weights", "secret_key": "hush"}
    },
    "checkpoint_storage.credential": {
        "checkpoint_storage": {
            "type": "azure",
            "container": "weights",
            "account_url": "https://ada.blob.core.windows.net",
            "credential": "hush",
        }
    },
    "checkpoint_storage.connection_string": {
        "checkpoint_storage": {
            "type": "azure",
            "container": "weights",
            "connection_string": "AccountName=ada;AccountKey=hush",
        }
    },
    "checkpoint_storage.propagation": {
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/a", "propagation": "shared"}
    },
    "checkpoint_storage.container_path": {
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/a", "container_path": "/x"}
    },
    "checkpoint_storage.tensorboard_path": {
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/a", "tensorboard_path": "/x"}
    },
    "internal": {"internal": {"native": {}}},
    "security": {"security": {}},
    "data_layer": {"data_layer": {"type": "shared_fs"}},
    "tensorboard_storage": {"tensorboard_storage": {}},
    "retention_policy": {"retention_policy": {"log_retention_days": 90}},
    "integrations.webhooks.webhook_id": {"integrations": {"webhooks": {"webhook_id": [1]}}},
    "slurm": {"slurm": {"slots_per_node": 4}},
    "pbs": {"pbs": {"pbsbatch_args": ["-lwalltime=1"]}},
    "log_policies": {"log_policies": [{"pattern": "x", "action": "exclude_node"}]},
    "profiling.enabled": {"profiling": {"enabled": True}},
    "profiling.begin_on_batch": {"profiling": {"begin_on_batch": 1}},
    "profiling.end_after_batch": {"profiling": {"end_after_batch": 9}},
    "profiling.sync_timings": {"profiling": {"sync_timings": False}},
    "records_per_epoch": {"records_per_epoch": 100},
    "searcher.stop_once": {"searcher": ASHA},
    "checkpoint_policy": {"checkpoint_policy": "all"},
    "min_validation_period": {"min_validation_period": {"batches": 5}},
    "min_checkpoint_period": {"min_checkpoint_period": {"batches": 5}},
    "perform_initial_validation": {"perform_initial_validation": True},
    "scheduling_unit": {"scheduling_unit": 5},
    "optimizations": {"optimizations": {"aggregation_frequency": 2}},
    "optimizations.mixed_precision": {
        "optimizations": {"mixed_precision": "O1"},
        "entrypoint": "model_def:Trial",
    },
    "optimizations.grad_updates_size_file": {
        "optimizations": {"grad_updates_size_file": "sizes"},
        "entrypoint": "model_def:Trial",
    },
}


def test_a_plain_config_has_no_field_without_effect(accept: Accept) -> None:
    assert ineffective_fields(accept()) == []


@pytest.mark.parametrize("row", LOCAL_PROCESSES, ids=lambda row: row.path)
def test_each_row_warns_of_its_field_when_it_is_set_and_of_nothing_else(
    accept: Accept, row: Ineffective
) -> None:
    (warning,) = ineffective_fields(accept(**SETTINGS[row.path]))
    assert warning.path == row.path or warning.path.startswith(f"{row.path}.")
    assert str(warning) == f"{warning.path} has no effect: {row.reason}"


def test_the_single_fields_of_a_section_are_named() -> None:
    config = parse_config(
        {
            "entrypoint": "x",
            "searcher": {"name": "single", "metric": "m"},
            "checkpoint_storage": {"type": "directory", "container_path": "/c"},
            "optimizations": {"mixed_precision": "O1", "gradient_compression": True},
            "environment": {"image": {"cpu": "a"}},
            "slurm": {"slots_per_node": 1, "gpu_type": "a100", "sbatch_args": ["--mem=1"]},
        }
    )
    assert [warning.path for warning in ineffective_fields(config)] == [
        "environment.image.cpu",
        "slurm",
        "optimizations.gradient_compression",
        "optimizations.mixed_precision",
    ]


@pytest.mark.parametrize(
    "entrypoint",
    [
        "model_def:Trial",
        "python3 -m determined.launch.torch_distributed --trial model_def:Trial",
        ["python3", "-m", "determined.launch.horovod", "--trial", "model_def:Trial"],
        "python3 -m determined.exec.harness model_def:Trial",
    ],
)
def test_fields_of_the_trial_apis_have_an_effect_on_trial_classes(accept: Accept, entrypoint: Any) -> None:
    settings = {
        "scheduling_unit": 5,
        "checkpoint_policy": "all",
        "optimizations": {"aggregation_frequency": 2, "gradient_compression": True},
        "profiling": {"enabled": True},
    }
    assert ineffective_fields(accept(entrypoint=entrypoint, **settings)) == []
    assert len(ineffective_fields(accept(**settings))) == 5


def test_what_the_cluster_sets_is_no_fault_of_the_user(good: dict[str, Any]) -> None:
    defaults = {
        "resources": {"shm_size": "4 GiB", "resource_pool": "a"},
        "environment": {"image": "cluster/image"},
        "bind_mounts": [{"host_path": "/a", "container_path": "/a"}],
    }
    layer = Layer("cluster defaults", defaults)
    assert ineffective_fields(parse_config(good, layers=[layer]), cluster_defaults=defaults) == []
    changed = parse_config({**good, "resources": {"resource_pool": "b"}}, layers=[layer])
    paths = [warning.path for warning in ineffective_fields(changed, cluster_defaults=defaults)]
    assert paths == ["resources.resource_pool"]


def test_a_config_that_was_stored_gives_the_same_warnings(accept: Accept) -> None:
    config = accept(environment={"image": "x"}, resources={"resource_pool": "a"})
    assert ineffective_fields(parse_config(config.to_dict())) == ineffective_fields(config)


def test_an_engine_that_honours_a_field_takes_its_row_away(accept: Accept) -> None:
    config = accept(resources={"resource_pool": "a", "shm_size": 4096})
    table = [row for row in LOCAL_PROCESSES if row.path != "resources.resource_pool"]
    paths = [warning.path for warning in ineffective_fields(config, table=table)]
    assert paths == ["resources.shm_size"]
