"""Completes configs; this may take seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from resolute.contracts.documents.document import read_document
from resolute.contracts.documents.faults import ConfigError
from resolute.errors import InvalidConfigError, Violation
from resolute_config.doubtful_values import doubtful_values
from resolute_config.ineffective_fields import LOCAL_PROCESSES, Ineffective, ineffective_fields
from resolute_config.layer import Layer
from resolute_config.loading.canonical import canonical
from resolute_config.loading.parse import first_given, parse_config, sanity_faults
from resolute_config.loading.steps import steps_warning
from resolute_config.test_mode import to_test_mode
from resolute_engines.configs.requirements import require
from resolute_experiments.admission.acceptance import Accepted, Admission
from resolute_experiments.admission.config_policies import Enforced
from resolute_experiments.specs.search import search_spec
from resolute_experiments.specs.storage import storage


def prepare_config(
    config_yaml: str, layers: Sequence[Layer], admission: Admission, enforced: Enforced, test_mode: bool
) -> Accepted:
    """Makes a whole config; see ``ConfigReader.whole``."""
    above = enforced.invariants()
    try:
        config = parse_config(config_yaml, layers=layers, above=above)
        enforced.check_config(config.to_dict())
        if enforced.defaults.content:
            config = parse_config(config_yaml, layers=[*layers, enforced.defaults], above=above)
    except ConfigError as error:
        raise _refused(error) from error
    if test_mode:
        config = to_test_mode(config)
    content = config.to_dict()
    search_spec(content)
    storage(content)
    admission.pools.check_slots(content)
    pool = admission.pools.chosen(content)
    require(content, pool.requirements)
    ineffective = ineffective_fields(
        config,
        cluster_defaults=admission.cluster_defaults,
        table=(
            *LOCAL_PROCESSES,
            *(
                Ineffective(unsupported_field.path, unsupported_field.reason)
                for unsupported_field in pool.unsupported_fields
            ),
        ),
        effective=pool.supported_fields,
    )
    of_pool = [warning for rule in pool.warnings for warning in rule.warnings(content)]
    converted = steps_warning(read_document(config_yaml).content)
    warnings = (*converted, *map(str, ineffective), *doubtful_values(config), *of_pool)
    return Accepted(config, warnings, pool.name, pool.runs_here)


def workspace_of(config_yaml: str, layers: Sequence[Layer]) -> str:
    """Reads the name of a workspace; see ``ConfigReader.workspace``."""
    try:
        return str(first_given("workspace", [Layer("", config_yaml), *layers]) or "")
    except ConfigError as error:
        raise _refused(error) from error


def check_template(config_yaml: str, name: str) -> dict[str, Any]:
    """Reads a template; see ``ConfigReader.template``."""
    try:
        document = read_document(config_yaml, name=f"template {name!r}")
        content = canonical(document.content)
        faults = [*document.faults, *sanity_faults(content, source=f"template {name!r}")]
    except ConfigError as error:
        raise _refused(error) from error
    if faults:
        raise _refused(ConfigError(faults))
    return content


def _refused(error: ConfigError) -> InvalidConfigError:
    violations = [Violation(fault.path, fault.reason) for fault in error.faults]
    return InvalidConfigError(str(error), violations=violations)
