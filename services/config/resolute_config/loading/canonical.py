"""Rewrites older and shorter spellings to the one form that merging uses.

It checks nothing: a value of unexpected shape is left unchanged, and validation reports it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resolute_config.loading.steps import without_steps
from resolute_config.sections.environment import DEVICE_CLASSES


def canonical(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with every spelling in its current, long form; the argument stays as it was."""
    document, _ = without_steps(document)
    for path, rewrite in _REWRITES:
        document = _rewritten(document, path, rewrite)
    return document


def _rewritten(node: Any, path: tuple[str, ...], rewrite: Callable[[Any], Any]) -> Any:
    if not path:
        return rewrite(node)
    head, *rest = path
    if not isinstance(node, dict) or node.get(head) is None:
        return node
    return {**node, head: _rewritten(node[head], tuple(rest), rewrite)}


def _gpu_is_cuda(classes: Any) -> Any:
    if not isinstance(classes, dict) or "gpu" not in classes or classes.get("cuda") is not None:
        return classes
    return {("cuda" if key == "gpu" else key): value for key, value in classes.items() if key != "cuda"}


def _image(image: Any) -> Any:
    return dict.fromkeys(DEVICE_CLASSES, image) if isinstance(image, str) else _gpu_is_cuda(image)


def _devices(devices: Any) -> Any:
    return [_device(device) for device in devices] if isinstance(devices, list) else devices


def _device(device: Any) -> Any:
    if not isinstance(device, str) or device.count(":") not in {1, 2}:
        return device
    host_path, container_path, *mode = device.split(":")
    spelled = {"host_path": host_path, "container_path": container_path}
    return {**spelled, "mode": mode[0]} if mode else spelled


def _resources(resources: Any) -> Any:
    """``slots`` is what ``slots_per_trial`` was called once."""
    if not isinstance(resources, dict) or "slots" not in resources:
        return resources
    rest = {key: value for key, value in resources.items() if key != "slots"}
    return (
        rest if rest.get("slots_per_trial") is not None else {**rest, "slots_per_trial": resources["slots"]}
    )


def _storage(storage: Any) -> Any:
    """Before ``storage_path`` existed, ``checkpoint_path`` had its meaning."""
    if not isinstance(storage, dict) or storage.get("checkpoint_path") is None:
        return storage
    if storage.get("storage_path") is not None:
        return storage
    moved = {key: value for key, value in storage.items() if key not in {"checkpoint_path", "storage_path"}}
    return {**moved, "storage_path": storage["checkpoint_path"]}


def _searcher(searcher: Any) -> Any:
    """``asha`` is what people call the method."""
    if isinstance(searcher, dict) and searcher.get("name") == "asha":
        return {**searcher, "name": "async_halving"}
    return searcher


def _log_policies(policies: Any) -> Any:
    return [_log_policy(policy) for policy in policies] if isinstance(policies, list) else policies


def _log_policy(policy: Any) -> Any:
    if isinstance(policy, dict) and isinstance(policy.get("action"), str):
        return {**policy, "action": {"type": policy["action"]}}
    return policy


_REWRITES: tuple[tuple[tuple[str, ...], Callable[[Any], Any]], ...] = (
    (("environment", "image"), _image),
    (("environment", "environment_variables"), _gpu_is_cuda),
    (("resources", "devices"), _devices),
    (("resources",), _resources),
    (("checkpoint_storage",), _storage),
    (("searcher",), _searcher),
    (("log_policies",), _log_policies),
)
