"""The config as training code reads it."""

from resolute import ExperimentConfig


def test_an_empty_config_has_the_documented_defaults() -> None:
    config = ExperimentConfig()
    assert config.get_entrypoint() is None
    assert not config.debug_enabled()
    assert config.scheduling_unit() == 100
    assert config.slots_per_trial() == 1
    assert not config.profiling_enabled()
    assert config.profiling_interval() == (0, None)
    assert config.average_training_metrics_enabled()
    assert config.get_optimizations_config() == {}
    assert config.get_checkpoint_storage() == {}


def test_a_config_is_read() -> None:
    config = ExperimentConfig(
        {
            "entrypoint": ["python", "train.py"],
            "debug": True,
            "scheduling_unit": 5,
            "reproducibility": {"experiment_seed": 7},
            "resources": {"slots_per_trial": 4, "native_parallel": True},
            "profiling": {"enabled": True, "begin_on_batch": 1, "end_after_batch": 9, "sync_timings": False},
            "optimizations": {"aggregation_frequency": 2, "average_training_metrics": False},
            "checkpoint_storage": {"type": "directory"},
            "searcher": {"name": "single"},
            "data": {"path": "/data"},
        }
    )
    assert config.get_entrypoint() == ["python", "train.py"]
    assert config.debug_enabled()
    assert (config.scheduling_unit(), config.experiment_seed(), config.slots_per_trial()) == (5, 7, 4)
    assert config.native_parallel_enabled()
    assert (config.profiling_enabled(), config.profiling_interval()) == (True, (1, 9))
    assert not config.profiling_sync_timings()
    assert config.get_optimizations_config()["aggregation_frequency"] == 2
    assert not config.average_training_metrics_enabled()
    assert config.get_checkpoint_storage() == {"type": "directory"}
    assert config.get_searcher() == {"name": "single"}
    assert config.get_data() == {"path": "/data"}


def test_a_section_may_be_null() -> None:
    assert ExperimentConfig({"resources": None}).slots_per_trial() == 1
