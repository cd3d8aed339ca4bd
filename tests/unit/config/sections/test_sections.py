"""The remaining sections: what they accept, what they refuse, their defaults."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from unit.config.conftest import Accept, Refuse

from resolute_config.sections.length import Length

ENGINES = Path(__file__).resolve().parents[4] / "docs" / "engines.md"


def test_the_defaults_are_those_of_the_documented_api(accept: Accept) -> None:
    shown = accept().to_dict()
    searcher, storage = shown.pop("searcher"), shown.pop("checkpoint_storage")
    assert searcher == {
        "name": "single",
        "metric": "loss",
        "smaller_is_better": True,
        "source_trial_id": None,
        "source_checkpoint_uuid": None,
        "max_length": {"batches": 100},
    }
    assert next(iter(searcher)) == "name"
    assert storage["propagation"] == "rprivate"
    assert shown == {
        "name": "digits",
        "description": None,
        "entrypoint": "python3 train.py",
        "hyperparameters": {},
        "checkpoint_policy": "best",
        "min_validation_period": {"batches": 0},
        "min_checkpoint_period": {"batches": 0},
        "perform_initial_validation": False,
        "records_per_epoch": 0,
        "scheduling_unit": 100,
        "max_restarts": 5,
        "repeat_same_failure": False,
        "hang": {"after": "auto", "on_hang": "warn"},
        "guard": None,
        "utilization_policy": None,
        "on_failure": None,
        "preemption_timeout": None,
        "termination_grace": None,
        "reproducibility": {"experiment_seed": 7},
        "resources": {
            "slots_per_trial": 1,
            "max_slots": None,
            "weight": 1,
            "priority": None,
            "resource_pool": "",
            "shm_size": None,
            "devices": [],
            "is_single_node": None,
            "preemptible": {"enabled": False, "metadata": None},
            "native_parallel": None,
            "agent_label": None,
        },
        "environment": {
            "image": {"cpu": None, "cuda": None, "rocm": None},
            "environment_variables": {"cpu": [], "cuda": [], "rocm": []},
            "secrets": [],
            "ports": {},
            "proxy_ports": [],
            "force_pull_image": False,
            "registry_auth": None,
            "add_capabilities": [],
            "drop_capabilities": [],
            "pod_spec": None,
            "warm_start": {"enabled": "auto", "preload": []},
        },
        "bind_mounts": [],
        "data": {},
        "debug": False,
        "reports": "warn",
        "labels": [],
        "workspace": "",
        "project": "",
        "log_policies": [
            {"name": "CUDA OOM", "pattern": ".*CUDA out of memory.*", "action": None},
            {"name": "ECC Error", "pattern": ".*uncorrectable ECC error encountered.*", "action": None},
        ],
        "profiling": {"enabled": False, "begin_on_batch": 0, "end_after_batch": None, "sync_timings": True},
        "optimizations": {
            "aggregation_frequency": 1,
            "average_aggregated_gradients": True,
            "average_training_metrics": True,
            "gradient_compression": False,
            "mixed_precision": "O0",
            "grad_updates_size_file": None,
            "tensor_fusion_threshold": 64,
            "tensor_fusion_cycle_time": 1,
            "auto_tune_tensor_fusion": False,
        },
        "slurm": {"slots_per_node": None, "gpu_type": None, "sbatch_args": []},
        "pbs": {"slots_per_node": None, "pbsbatch_args": []},
        "integrations": None,
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"nmae": "x"}, "nmae: unknown field; did you mean 'name'?"),
    ({"wholly_unlike_anything": 1}, "wholly_unlike_anything: unknown field"),
    (
        {"batches_per_step": 0},
        "batches_per_step: unknown field; removed; lengths are given as {batches: N}",
    ),
    ({"name": 5}, "name: found 5; expected text (numbers and dates need quotes)"),
    ({"name": ""}, 'name: found ""; expected text that is not empty'),
    ({"description": ["x"]}, "description: found a list of 1; expected text"),
    (
        {"entrypoint": ...},
        "entrypoint: missing; expected the command that trains, such as: entrypoint: python3 train.py",
    ),
    ({"entrypoint": "  "}, "entrypoint: it is empty; expected a command as text, or as a list of texts"),
    ({"entrypoint": []}, "entrypoint: it is empty; expected a command as text, or as a list of texts"),
    (
        {"entrypoint": ["python3", 5]},
        "entrypoint: found a list of 2; expected a command as text, or as a list",
    ),
    ({"entrypoint": {"run": "x"}}, "entrypoint: found a map; expected a command as text, or as a list"),
    ({"searcher": ...}, "searcher: missing; expected a map with the search method's name and its metric"),
    ({"searcher": "single"}, 'searcher: found "single"; expected a map whose name is one of single, random'),
    (
        {"checkpoint_policy": "worst"},
        "checkpoint_policy: found \"worst\"; expected one of 'best', 'all' or 'none'",
    ),
    ({"min_validation_period": 5}, "min_validation_period: found 5; expected exactly one of {batches: N}"),
    (
        {"min_checkpoint_period": {"epochs": -1}},
        "min_checkpoint_period: found -1 epochs; expected exactly one of",
    ),
    (
        {"min_checkpoint_period": {"epochs": True}},
        "min_checkpoint_period: found True epochs; expected exactly one of",
    ),
    (
        {"perform_initial_validation": "on"},
        'perform_initial_validation: found "on"; expected true or false; write true',
    ),
    ({"perform_initial_validation": 1}, "perform_initial_validation: found 1; expected true or false"),
    ({"records_per_epoch": -1}, "records_per_epoch: found -1; expected 0 or more"),
    ({"scheduling_unit": 0}, "scheduling_unit: found 0; expected 1 or more"),
    ({"max_restarts": -1}, "max_restarts: found -1; expected 0 or more"),
    ({"max_restarts": 2**31}, "max_restarts: found 2147483648; expected 2147483647 or less"),
    ({"termination_grace": -1}, "termination_grace: found -1; expected 0 or more"),
    ({"termination_grace": 3601}, "termination_grace: found 3601; expected 3600 or less"),
    ({"termination_grace": "1m"}, 'termination_grace: found "1m"; expected a number'),
    (
        {"reproducibility": {"experiment_seed": -1}},
        "reproducibility.experiment_seed: found -1; expected 0 or more",
    ),
    (
        {"reproducibility": {"experiment_seed": 2**32}},
        "reproducibility.experiment_seed: found 4294967296; expected",
    ),
    (
        {"reproducibility": {"seed": 1}},
        "reproducibility.seed: unknown field; did you mean 'experiment_seed'?",
    ),
    ({"resources": 4}, "resources: found 4; expected a map"),
    ({"resources": {"slot": 4}}, "resources.slot: unknown field; did you mean 'max_slots'?"),
    ({"resources": {"slots_per_trial": -1}}, "resources.slots_per_trial: found -1; expected 0 or more"),
    ({"resources": {"max_slots": -2}}, "resources.max_slots: found -2; expected 0 or more"),
    (
        {"resources": {"max_slots": 2, "slots_per_trial": 4}},
        "resources.max_slots: found 2; expected slots_per_trial (4) or more: no trial could ever start",
    ),
    ({"resources": {"max_slots": 0}}, "resources.max_slots: found 0; expected slots_per_trial (1) or more"),
    ({"resources": {"weight": 0}}, "resources.weight: found 0; expected a number greater than 0"),
    ({"resources": {"weight": "1"}}, 'resources.weight: found "1"; expected a number'),
    ({"resources": {"priority": 0}}, "resources.priority: found 0; expected 1 or more"),
    (
        {"resources": {"preemptible": "spot"}},
        'resources.preemptible: found "spot"; expected true, false, or a map with metadata',
    ),
    (
        {"resources": {"preemptible": {"metadata": {}}}},
        'resources.preemptible.metadata.url: missing; expected a URL such as "http://169.254.169.254/path"',
    ),
    *(
        (
            {"resources": {"preemptible": {"metadata": {"url": url}}}},
            f'resources.preemptible.metadata.url: found "{url}"; expected a URL such as',
        )
        for url in (
            "https://169.254.169.254/x",
            "file:///etc/passwd",
            "http:///x",
            "http://user:secret@h/x",
            "http://h:99999/x",
            "http://h/a b",
            "http://h/x#y",
        )
    ),
    (
        {"resources": {"preemptible": {"metadata": {"url": "http://h/x", "headers": {"a b": "c"}}}}},
        "resources.preemptible.metadata.headers: found",
    ),
    (
        {"resources": {"preemptible": {"metadata": {"url": "http://h/x", "headers": {"A": "b\r\nC: d"}}}}},
        "resources.preemptible.metadata.headers: found",
    ),
    (
        {"resources": {"preemptible": {"metadata": {"url": "http://h/x", "interval": 0}}}},
        "resources.preemptible.metadata.interval: found 0; expected 1 or more",
    ),
    (
        {"resources": {"preemptible": {"metadata": {"url": "http://h/x", "timeout": 60}}}},
        "resources.preemptible.metadata.timeout: found 60; expected 30 or less",
    ),
    (
        {"resources": {"preemptible": {"metadata": {"url": "http://h/x", "state": 200}}}},
        "resources.preemptible.metadata.state: unknown field; did you mean 'status'?",
    ),
    ({"resources": {"priority": 100}}, "resources.priority: found 100; expected 99 or less"),
    (
        {"resources": {"shm_size": "4 gigs"}},
        'resources.shm_size: found "4 gigs"; expected a number of bytes, or a size',
    ),
    ({"resources": {"shm_size": "9" * 999}}, 'resources.shm_size: found "999'),
    ({"resources": {"shm_size": -1}}, "resources.shm_size: found -1; expected a number of bytes"),
    ({"resources": {"shm_size": True}}, "resources.shm_size: found true; expected a number of bytes"),
    (
        {"resources": {"devices": ["/dev/x"]}},
        'resources.devices[0]: found "/dev/x"; expected a map with host_path',
    ),
    (
        {"resources": {"devices": ["/a:/b:rwx"]}},
        'resources.devices[0].mode: found "rwx"; expected a combination of r',
    ),
    (
        {"resources": {"devices": ["a:/b"]}},
        'resources.devices[0].host_path: found "a"; expected an absolute path',
    ),
    (
        {"resources": {"devices": ["/a:/c", "/b:/c"]}},
        "resources.devices[1].container_path: /c is mounted twice; expected a path of its own for each mount",
    ),
    (
        {"environment": {"image": 5}},
        "environment.image: found 5; expected the name of an image, or a map of such",
    ),
    ({"environment": {"image": {"tpu": "x"}}}, "environment.image.tpu: unknown field; did you mean 'cpu'?"),
    ({"environment": {"image": {"gpu": 5}}}, "environment.image.cuda: found 5; expected text"),
    (
        {"environment": {"environment_variables": ["A=1", 5]}},
        "environment.environment_variables[1]: found 5; expected text",
    ),
    (
        {"environment": {"environment_variables": ["=1"]}},
        'environment.environment_variables[0]: found "=1"; expected "NAME=value", or "NAME"',
    ),
    (
        {"environment": {"environment_variables": {"cpu": [{"A": 1}]}}},
        "environment.environment_variables.cpu[0]: found a map; expected text",
    ),
    (
        {"environment": {"environment_variables": "A=1"}},
        'environment.environment_variables: found "A=1"; expected a list of "NAME=value", or a map',
    ),
    ({"environment": {"ports": {"web": 0}}}, "environment.ports.web: found 0; expected 1 or more"),
    (
        {"environment": {"proxy_ports": [{}]}},
        "environment.proxy_ports[0].proxy_port: missing; expected a port from 1",
    ),
    (
        {"environment": {"registry_auth": {"user": "x"}}},
        "environment.registry_auth.user: unknown field; did you mean",
    ),
    ({"environment": {"pod_spec": []}}, "environment.pod_spec: found an empty list; expected a map"),
    ({"bind_mounts": {}}, "bind_mounts: found an empty map; expected a list"),
    (
        {"bind_mounts": [{"host_path": "a", "container_path": "b"}]},
        'bind_mounts[0].host_path: found "a"; expected an absolute path',
    ),
    (
        {"bind_mounts": [{"host_path": "/a", "container_path": "."}]},
        'bind_mounts[0].container_path: found "."; expected a path other than the working directory itself',
    ),
    *(
        (
            {"bind_mounts": [{"host_path": "/a", "container_path": path}]},
            f'bind_mounts[0].container_path: found "{path}"; expected {wanted}',
        )
        for path, wanted in (
            ("./", "a path other than the working directory itself"),
            ("//", "a path other than the topmost directory"),
            ("a/../../b", "an absolute path, or one below the working directory"),
            ("/resolute", "a path outside of /resolute, which is the platform's own"),
            ("//resolute/./run", "a path outside of /resolute, which is the platform's own"),
            ("/a/../opt/resolute/lib", "a path outside of /opt/resolute, which is the platform's own"),
        )
    ),
    (
        {
            "bind_mounts": [
                {"host_path": "/a", "container_path": "c"},
                {"host_path": "/b", "container_path": "c"},
            ]
        },
        "bind_mounts[1].container_path: c is mounted twice; expected a path of its own for each mount",
    ),
    (
        {
            "bind_mounts": [
                {"host_path": "/a", "container_path": "./c"},
                {"host_path": "/b", "container_path": "c/d"},
            ]
        },
        "bind_mounts[1].container_path: c/d lies in another mount, c; expected a path of its own",
    ),
    (
        {
            "bind_mounts": [
                {"host_path": "/a", "container_path": "c/"},
                {"host_path": "/b", "container_path": "./c"},
            ]
        },
        "bind_mounts[1].container_path: c is mounted twice; expected a path of its own for each mount",
    ),
    ({"data": [1]}, "data: found a list of 1; expected a map"),
    ({"debug": "yes"}, 'debug: found "yes"; expected true or false; write true'),
    ({"labels": "a"}, 'labels: found "a"; expected a list'),
    ({"labels": ["a", 1]}, "labels[1]: found 1; expected text"),
    (
        {"workspace": "w"},
        "project: missing; expected both workspace and project, or neither; workspace is given",
    ),
    (
        {"project": "p"},
        "workspace: missing; expected both workspace and project, or neither; project is given",
    ),
    ({"log_policies": [{"pattern": "x"}]}, "log_policies[0].action: missing; expected a map with type"),
    ({"log_policies": [{"action": "exclude_node"}]}, "log_policies[0].pattern: missing; expected a regular"),
    (
        {"log_policies": [{"name": "a", "pattern": "x"}, {"name": "a", "pattern": "y"}]},
        "log_policies: log_policies have duplicated names: a; expected a name of its own",
    ),
    (
        {"log_policies": [{"pattern": "(", "action": {"type": "exclude_node"}}]},
        'log_policies[0].pattern: found "("; expected a regular expression; it is not one: missing )',
    ),
    (
        {"log_policies": [{"pattern": "a(?!b)", "action": {"type": "exclude_node"}}]},
        'log_policies[0].pattern: found "a(?!b)"; expected a regular expression in RE2 syntax',
    ),
    (
        {"log_policies": [{"pattern": r"(a)\1", "action": {"type": "exclude_node"}}]},
        'log_policies[0].pattern: found "(a)\\\\1"; expected a regular expression in RE2 syntax',
    ),
    (
        {"log_policies": [{"pattern": "a", "action": {"type": "panic"}}]},
        "log_policies[0].action.type: found \"panic\"; expected one of 'cancel_retries' or 'exclude_node'",
    ),
    ({"profiling": {"begin_on_batch": -1}}, "profiling.begin_on_batch: found -1; expected 0 or more"),
    (
        {"profiling": {"begin_on_batch": 5, "end_after_batch": 4}},
        "profiling.end_after_batch: found 4; expected begin_on_batch (5) or more",
    ),
    (
        {"optimizations": {"aggregation_frequency": 0}},
        "optimizations.aggregation_frequency: found 0; expected 1 or",
    ),
    (
        {"optimizations": {"mixed_precision": "O4"}},
        'optimizations.mixed_precision: found "O4"; expected one of',
    ),
    (
        {"slurm": {"sbatch_args": ["--job-name=x"]}},
        "slurm.sbatch_args[0]: found --job-name; expected options other",
    ),
    (
        {"slurm": {"sbatch_args": ["-Jx"]}},
        "slurm.sbatch_args[0]: found -Jx; expected options other than those",
    ),
    (
        {"slurm": {"sbatch_args": ["--deadline=now", "--exclude=n1", "-Qv", "--arra=1-50"]}},
        "slurm.sbatch_args[3]: found --arra; expected options other",
    ),
    (
        {"slurm": {"sbatch_args": ["--distribution=block", "--dep=singleton"]}},
        "slurm.sbatch_args[1]: found --dep; expected options other",
    ),
    (
        {"slurm": {"sbatch_args": ["-QJx"]}},
        "slurm.sbatch_args[0]: found -QJx; expected options other",
    ),
    ({"slurm": {"slots_per_node": 0}}, "slurm.slots_per_node: found 0; expected 1 or more"),
    (
        {"pbs": {"pbsbatch_args": ["-N x"]}},
        "pbs.pbsbatch_args[0]: found -N; expected options other than those",
    ),
    ({"pbs": {"sbatch_args": []}}, "pbs.sbatch_args: unknown field; did you mean 'pbsbatch_args'?"),
]


@pytest.mark.parametrize(("changes", "fault"), REFUSED, ids=[fault.split(":")[0] for _, fault in REFUSED])
def test_what_cannot_be_is_refused_with_path_found_and_expected(
    refuse: Refuse, changes: dict[str, Any], fault: str
) -> None:
    faults = refuse(**changes)
    assert len(faults) == 1, faults
    assert faults[0].startswith(fault)


def test_all_faults_of_all_sections_are_listed_at_once(refuse: Refuse) -> None:
    changes: dict[str, Any] = {}
    expected: set[str] = set()
    for change, fault in REFUSED:
        if not changes.keys() & change.keys() and {"workspace", "project"}.isdisjoint(change):
            changes.update(change)
            expected.add(fault)
    faults = refuse(**changes)
    assert len(faults) == len(expected)
    assert all(any(fault.startswith(start) for start in expected) for fault in faults)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1024, 1024),
        ("1024", 1024),
        ("10b", 10),
        ("1 k", 1024),
        ("1.5 MiB", 3 * 2**19),
        (".5gb", 2**29),
        ("4 GiB", 2**32),
        ("1T", 2**40),
        ("1 pib", 2**50),
    ],
)
def test_sizes_are_read_as_bytes(accept: Accept, written: Any, size: int) -> None:
    assert accept(resources={"shm_size": written}).resources.shm_size == size


def test_whole_floats_are_integers(accept: Accept) -> None:
    config = accept(
        scheduling_unit=1e3, min_validation_period={"batches": 1e4}, resources={"slots_per_trial": 2.0}
    )
    assert (config.scheduling_unit, config.resources.slots_per_trial) == (1000, 2)
    assert config.min_validation_period == Length(10000, "batches")
    assert type(config.to_dict()["scheduling_unit"]) is int


def test_null_means_not_given(accept: Accept) -> None:
    nulls = dict.fromkeys(
        ("resources", "environment", "labels", "data", "debug", "optimizations", "hyperparameters")
    )
    assert accept(**nulls) == accept()
    assert accept(resources={"weight": None, "devices": None}, profiling={"enabled": None}) == accept()


def test_labels_and_log_policies_are_kept_once_and_in_order(accept: Accept) -> None:
    policy = {"pattern": "oom", "action": {"type": "cancel_retries"}}
    short = {"pattern": "oom", "action": "cancel_retries"}
    other = {"pattern": r"ecc\b", "action": "exclude_node", "name": "ECC"}
    config = accept(labels=["b", "a", "b"], log_policies=[policy, other, short])
    assert config.labels == ("b", "a")
    assert config.to_dict()["log_policies"][:-2] == [
        {**policy, "name": None},
        {"pattern": r"ecc\b", "action": {"type": "exclude_node"}, "name": "ECC"},
    ]


def test_a_log_policy_may_be_a_label_or_the_name_of_a_default_that_it_disables(accept: Accept) -> None:
    label = {"name": "slow", "pattern": "slow"}
    config = accept(log_policies=[label, {"name": "CUDA OOM"}])
    assert [(policy.name, policy.pattern, policy.action) for policy in config.log_policies] == [
        ("slow", "slow", None),
        ("CUDA OOM", None, None),
        ("ECC Error", ".*uncorrectable ECC error encountered.*", None),
    ]


def test_shorter_and_older_spellings_are_read(accept: Accept) -> None:
    config = accept(
        resources={"devices": ["/dev/a:/dev/b", "/dev/c:/dev/d:r"]},
        environment={"image": {"gpu": "new", "cpu": "old"}, "environment_variables": {"gpu": ["A=1"]}},
    )
    assert [device.mode for device in config.resources.devices] == ["mrw", "r"]
    assert (config.environment.image.cuda, config.environment.image.cpu) == ("new", "old")
    assert config.environment.environment_variables.cuda == ("A=1",)
    everywhere = accept(environment={"image": "one", "environment_variables": ["A=1", "B"]}).environment
    assert (everywhere.image.cpu, everywhere.image.cuda, everywhere.image.rocm) == ("one", "one", "one")
    assert everywhere.environment_variables.rocm == ("A=1", "B")


def test_gpu_beside_cuda_is_refused(refuse: Refuse) -> None:
    assert refuse(environment={"image": {"gpu": "a", "cuda": "b"}}) == [
        "environment.image.gpu: unknown field; it is the old name of cuda, which is given too"
    ]


def test_removed_fields_are_accepted_and_shown_only_when_given(accept: Accept) -> None:
    shown = accept(internal={"native": None}, data_layer={"type": "s3"}, security={}).to_dict()
    assert (shown["internal"], shown["data_layer"], shown["security"]) == (
        {"native": None},
        {"type": "s3"},
        {"kerberos": None},
    )
    assert "tensorboard_storage" not in shown


def test_an_entrypoint_may_be_a_list(accept: Accept) -> None:
    config = accept(entrypoint=["python3", "train.py", ""])
    assert config.entrypoint == ("python3", "train.py", "")
    assert config.to_dict()["entrypoint"] == ["python3", "train.py", ""]


def test_the_examples_of_preemptible_machines_are_accepted(accept: Accept) -> None:
    (section,) = [
        part
        for part in ENGINES.read_text().split("\n## ")
        if part.startswith("Machines that are taken away\n")
    ]
    examples = [block.partition("```")[0] for block in section.split("```yaml\n")[1:]]
    assert len(examples) == 4
    for example in examples:
        accepted = accept(**yaml.safe_load(example)).to_dict()["resources"]["preemptible"]
        assert accepted["enabled"]
        assert ("metadata:" in example) == (accepted["metadata"] is not None)
