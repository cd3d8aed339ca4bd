"""Merges a config over the layers below it: a template, and the defaults of a workspace or of the cluster.

A scalar or list of the higher layer replaces that of the lower one. Maps merge field by field. Null means
"not given". The table ``_RULES`` names the exceptions. All functions take canonical documents and do not
change them. Values of unexpected shape are replaced as a whole, and validation reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from resolute_config.sections.environment import DEVICE_CLASSES
from resolute_config.sections.hyperparameters import is_typed
from resolute_config.sections.searcher import CommonSearcher
from resolute_config.sections.storage import CommonStorage

Path: TypeAlias = tuple[str, ...]
Rule: TypeAlias = Callable[[Any, Any, Path], Any]
"""Merges two values that are both given: the higher layer's, the lower layer's, and where they stand."""


def merge(higher: Mapping[str, Any], lower: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two canonical documents; what ``higher`` gives wins."""
    return _maps(higher, lower, ())


def _maps(higher: Mapping[str, Any], lower: Mapping[str, Any], at: Path) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in higher.items():
        if value is None and key in lower:
            continue
        below = lower.get(key)
        merged[key] = value if below is None else _values(value, below, (*at, key))
    return merged


def _values(higher: Any, lower: Any, at: Path) -> Any:
    return _RULES.get(at, _by_shape)(higher, lower, at)


def _by_shape(higher: Any, lower: Any, at: Path) -> Any:
    if isinstance(higher, dict) and isinstance(lower, dict):
        return _maps(higher, lower, at)
    return higher


def _replace(higher: Any, lower: Any, at: Path) -> Any:  # noqa: ARG001  # every rule has the same signature
    return higher


def _by_kind(tag: str, *, common: Collection[str]) -> Rule:
    """Merge sections that come in kinds.

    Fields that all kinds have merge whatever the kinds are. The other fields of the lower layer count only if
    both layers are of one kind, or one of them names none.
    """

    def rule(higher: Any, lower: Any, at: Path) -> Any:
        if isinstance(higher, dict) and isinstance(lower, dict):
            above, below = higher.get(tag), lower.get(tag)
            if above is not None and below is not None and above != below:
                lower = {field: value for field, value in lower.items() if field in common}
        return _by_shape(higher, lower, at)

    return rule


def _mounts(higher: Any, lower: Any, at: Path) -> Any:
    """Both layers' mounts, the higher layer's first; of two at one container path only the first."""
    if not isinstance(higher, list) or not isinstance(lower, list):
        return _by_shape(higher, lower, at)
    taken = {mount.get("container_path") for mount in higher if isinstance(mount, dict)} - {None}
    return [*higher, *(m for m in lower if not isinstance(m, dict) or m.get("container_path") not in taken)]


def _log_policies(higher: Any, lower: Any, at: Path) -> Any:
    """Both layers' policies, the higher layer's first.

    One of the lower layer is left out if the higher layer has one of its name or, where it has no name, one
    with its pattern and action. So a policy that is nothing but a name disables the lower layer's.
    """
    if not isinstance(higher, list) or not isinstance(lower, list):
        return _by_shape(higher, lower, at)
    above = [policy for policy in higher if isinstance(policy, dict)]
    return [*higher, *(policy for policy in lower if not any(_overrides(mine, policy) for mine in above))]


def _overrides(higher: Mapping[str, Any], lower: Any) -> bool:
    if not isinstance(lower, dict):
        return False
    if lower.get("name") is not None:
        return bool(higher.get("name") == lower["name"])
    return all(higher.get(field) == lower.get(field) for field in ("pattern", "action"))


def _variables(higher: Any, lower: Any, at: Path) -> Any:
    """For each class of device the lower layer's entries, then the higher layer's, which so override."""
    if isinstance(higher, list) and isinstance(lower, list):
        return [*lower, *higher]
    above, below = _by_class(higher), _by_class(lower)
    if above is None or below is None:
        return _by_shape(higher, lower, at)
    merged = _maps(above, below, at)
    for name in DEVICE_CLASSES:
        first, then = below.get(name), above.get(name)
        if isinstance(first, list) and isinstance(then, list):
            merged[name] = [*first, *then]
    return merged


def _by_class(variables: Any) -> dict[str, Any] | None:
    if isinstance(variables, list):
        return dict.fromkeys(DEVICE_CLASSES, variables)
    return variables if isinstance(variables, dict) else None


def _hyperparameters(higher: Any, lower: Any, at: Path) -> Any:
    """Maps of hyperparameters merge; a hyperparameter is whole, and null is a constant like any other."""
    if not isinstance(higher, dict) or not isinstance(lower, dict):
        return higher
    merged = dict(lower)
    for name, value in higher.items():
        groups = name in lower and not is_typed(value) and not is_typed(lower[name])
        merged[name] = _hyperparameters(value, lower[name], (*at, name)) if groups else value
    return merged


_RULES: Mapping[Path, Rule] = {
    ("searcher",): _by_kind("name", common=CommonSearcher.model_fields),
    ("searcher", "max_length"): _replace,  # a length is one value that happens to be written as a map
    ("min_validation_period",): _replace,
    ("min_checkpoint_period",): _replace,
    ("checkpoint_storage",): _by_kind("type", common=CommonStorage.model_fields),
    ("hyperparameters",): _hyperparameters,
    ("bind_mounts",): _mounts,
    ("resources", "devices"): _mounts,
    ("log_policies",): _log_policies,
    ("environment", "environment_variables"): _variables,
}
