"""Any accepted config, shown in full and read again, is the same config."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from resolute.contracts.documents.document import read_document
from resolute_config.loading.parse import parse_config

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
BUCKET = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
CONTAINER = st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True)
FLAG = st.booleans()
COUNT = st.integers(0, 100)
POSITIVE = st.integers(1, 100)
NUMBER = st.one_of(st.integers(-50, 50), st.floats(-50, 50))
JSON = st.recursive(
    st.one_of(
        st.none(),
        FLAG,
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=6,
)


def section(required: dict[str, Any] | None = None, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A map with all required fields and any of the optional ones, each perhaps null."""
    return st.fixed_dictionaries(
        required or {}, optional={name: st.one_of(st.none(), values) for name, values in optional.items()}
    )


def length(least: int) -> st.SearchStrategy[dict[str, int]]:
    return st.builds(
        lambda unit, value: {unit: value},
        st.sampled_from(["batches", "records", "epochs"]),
        st.integers(least, 2**40),
    )


def ranges(kind: str, numbers: st.SearchStrategy[Any], **more: Any) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(numbers, numbers).filter(lambda pair: pair[0] != pair[1])
    return st.builds(
        lambda pair, rest: {"type": kind, "minval": min(pair), "maxval": max(pair), **rest},
        bounds,
        st.fixed_dictionaries({"count": st.integers(1, 3), **more}),
    )


LEAF = st.one_of(
    st.one_of(st.none(), FLAG, st.integers(-9, 9), TEXT, st.lists(JSON, max_size=2)),
    st.fixed_dictionaries({"type": st.just("const"), "val": JSON}),
    ranges("int", st.integers(-100, 100)),
    ranges("double", NUMBER),
    ranges("log", st.floats(-5, 5), base=st.floats(0.5, 20)),
    st.fixed_dictionaries({"type": st.just("categorical"), "vals": st.lists(JSON, min_size=1, max_size=3)}),
)
HP_NAME = NAME.filter(lambda name: name not in {"type", "global_batch_size"})
SPACE = st.dictionaries(HP_NAME, st.one_of(LEAF, st.dictionaries(HP_NAME, LEAF, max_size=2)), max_size=3)

COMMON: dict[str, Any] = {"smaller_is_better": FLAG, "source_trial_id": POSITIVE}
BARE_OR_UNIT = st.one_of(length(1), COUNT)
ASHA: dict[str, Any] = {
    "divisor": st.one_of(st.integers(2, 9), st.floats(1.5, 9)),
    "max_concurrent_trials": COUNT,
    "stop_once": FLAG,
    **COMMON,
}
TIMED = {"max_time": POSITIVE, "time_metric": NAME}


def named(name: str, **required: Any) -> dict[str, Any]:
    return {"name": st.just(name), "metric": NAME, **required}


SEARCHER = st.one_of(
    section(named("single"), max_length=BARE_OR_UNIT, smaller_is_better=FLAG, source_checkpoint_uuid=NAME),
    section(
        named("random", max_trials=POSITIVE), max_length=BARE_OR_UNIT, max_concurrent_trials=COUNT, **COMMON
    ),
    section(named("grid"), max_length=BARE_OR_UNIT, max_concurrent_trials=COUNT, **COMMON),
    section(
        named("adaptive_asha", max_trials=POSITIVE, max_length=st.one_of(length(1), POSITIVE)),
        mode=st.sampled_from(["aggressive", "standard", "conservative"]),
        max_rungs=POSITIVE,
        bracket_rungs=st.lists(POSITIVE, max_size=3),
        **ASHA,
    ),
    section(named("adaptive_asha", max_trials=POSITIVE, **TIMED), **ASHA),
    section(named("async_halving", max_trials=POSITIVE, num_rungs=POSITIVE, max_length=length(1)), **ASHA),
    section(named("custom"), unit=st.sampled_from(["batches", "records", "epochs"]), anything=JSON, **COMMON),
)

KEEP = {"save_experiment_best": COUNT, "save_trial_best": COUNT, "save_trial_latest": COUNT}


def stays_below(path: str) -> bool:
    """Whether a path surely does not lead out of the working directory, or to it."""
    return not {".", "/"} & set(path)


PATH = st.lists(st.sampled_from(["a", "b", "..", "."]), max_size=2).map(lambda steps: "/" + "/".join(steps))
STORAGE = st.one_of(
    section(
        {"type": st.just("shared_fs"), "host_path": PATH},
        storage_path=st.sampled_from(["x", "x/../y", "."]),
        checkpoint_path=st.just("old"),
        tensorboard_path=TEXT,
        container_path=TEXT,
        propagation=st.sampled_from(["rprivate", "shared"]),
        **KEEP,
    ),
    section({"type": st.just("directory"), "container_path": PATH}, **KEEP),
    section(
        {"type": st.just("s3"), "bucket": BUCKET},
        access_key=TEXT,
        secret_key=TEXT,
        endpoint_url=TEXT,
        prefix=st.just("a/b"),
        **KEEP,
    ),
    section({"type": st.just("gcs"), "bucket": BUCKET}, prefix=st.just("p"), **KEEP),
    section({"type": st.just("azure"), "container": CONTAINER, "account_url": TEXT}, credential=TEXT, **KEEP),
    section({"type": st.just("azure"), "container": CONTAINER, "connection_string": TEXT}, **KEEP),
)

WARM = FLAG | st.just("auto")
VARIABLE = st.sampled_from(["A=1", "A=", "B", "C=x=y z\n"])
BY_CLASS = ("cpu", "cuda", "rocm")
ENVIRONMENT = section(
    image=st.one_of(TEXT, section(cpu=TEXT, gpu=TEXT), section(cuda=TEXT, rocm=TEXT)),
    environment_variables=st.one_of(
        st.lists(VARIABLE, max_size=2),
        section(cpu=st.lists(VARIABLE, max_size=2), gpu=st.lists(VARIABLE, max_size=2)),
    ),
    secrets=st.lists(st.sampled_from(["hub", "HF_TOKEN=hub"]), max_size=2),
    ports=st.dictionaries(NAME, st.integers(1, 65535), max_size=2),
    proxy_ports=st.lists(section({"proxy_port": st.integers(1, 65535)}, proxy_tcp=FLAG), max_size=2),
    force_pull_image=FLAG,
    registry_auth=section(username=TEXT, password=TEXT),
    add_capabilities=st.lists(NAME, max_size=2),
    pod_spec=st.fixed_dictionaries(
        {"metadata": st.fixed_dictionaries({"labels": st.dictionaries(TEXT, TEXT, max_size=2)})}
    ),
    warm_start=WARM | section(enabled=WARM, preload=st.lists(NAME, max_size=2)),
)
RESOURCES = section(
    slots_per_trial=st.integers(0, 8),
    max_slots=st.integers(8, 99),
    weight=st.one_of(POSITIVE, st.floats(0.1, 9)),
    priority=st.integers(1, 99),
    resource_pool=TEXT,
    shm_size=st.one_of(COUNT, st.sampled_from(["4 GiB", "1.5mb", "7"])),
    devices=st.lists(st.sampled_from(["/a:/b", "/c:/d:rw"]), unique=True),
    is_single_node=FLAG,
    preemptible=FLAG
    | section(
        enabled=FLAG,
        metadata=section(
            {"url": st.just("http://169.254.169.254/spot")},
            headers=st.dictionaries(st.just("Metadata-Flavor"), st.just("Google")),
            status=st.integers(200, 599),
            contains=st.just("TRUE"),
            interval=st.integers(1, 300),
            timeout=st.floats(0.1, 30),
        ),
    ),
    native_parallel=FLAG,
    agent_label=JSON,
)
PROFILING = section(enabled=FLAG, begin_on_batch=st.integers(0, 5), end_after_batch=st.integers(5, 9))
OPTIMIZATIONS = section(
    aggregation_frequency=POSITIVE,
    mixed_precision=st.sampled_from(["O0", "O1", "O2", "O3"]),
    tensor_fusion_threshold=COUNT,
    gradient_compression=FLAG,
    grad_updates_size_file=TEXT,
)
POLICY = section(
    {
        "pattern": st.sampled_from(["x", r"a\.b", "(?i)oom"]),
        "action": st.sampled_from(["cancel_retries", {"type": "exclude_node"}]),
    },
    name=NAME,
)
CONFIG = section(
    {
        "searcher": SEARCHER,
        "checkpoint_storage": STORAGE,
        "entrypoint": st.sampled_from(["x y", "m:T", ["a", "b c"]]),
    },
    name=NAME,
    description=TEXT,
    hyperparameters=SPACE,
    checkpoint_policy=st.sampled_from(["best", "all", "none"]),
    min_validation_period=length(0),
    min_checkpoint_period=length(0),
    perform_initial_validation=FLAG,
    records_per_epoch=COUNT,
    scheduling_unit=POSITIVE,
    max_restarts=COUNT,
    reproducibility=section(experiment_seed=st.integers(0, 2**32 - 1)),
    resources=RESOURCES,
    environment=ENVIRONMENT,
    bind_mounts=st.lists(
        section({"host_path": PATH, "container_path": NAME.filter(stays_below)}, read_only=FLAG),
        max_size=2,
        unique_by=lambda mount: str(mount["container_path"]),
    ),
    data=st.dictionaries(TEXT, JSON, max_size=3),
    debug=FLAG,
    labels=st.lists(NAME, max_size=3),
    preemption_timeout=st.sampled_from([0, 2.5, 30 * 86_400]),
    termination_grace=st.sampled_from([0, 2.5, 3600]),
    log_policies=st.lists(POLICY, max_size=2, unique_by=lambda policy: policy.get("name") or str(policy)),
    profiling=PROFILING,
    optimizations=OPTIMIZATIONS,
    slurm=section(
        slots_per_node=POSITIVE,
        gpu_type=st.from_regex(r"[A-Za-z0-9._-]{0,12}", fullmatch=True),
        sbatch_args=st.just(["--mem=1"]),
    ),
    pbs=section(slots_per_node=POSITIVE, pbsbatch_args=st.just(["-lx=1"])),
    internal=JSON,
    data_layer=JSON,
)


@settings(max_examples=150)
@given(CONFIG)
def test_a_config_shown_in_full_reads_as_itself(given_config: dict[str, Any]) -> None:
    config = parse_config(given_config)
    shown = config.to_dict()
    stored = json.dumps(shown, allow_nan=False)
    again = parse_config(stored)
    assert again == config
    assert again.to_dict() == shown
    assert json.dumps(again.to_dict()) == stored


@settings(max_examples=150)
@given(st.dictionaries(TEXT, JSON, max_size=4))
def test_json_read_as_yaml_is_what_json_says(data: dict[str, Any]) -> None:
    for text in (json.dumps(data), json.dumps(data, ensure_ascii=True, indent=1)):
        assert read_document(text).content == json.loads(text)
