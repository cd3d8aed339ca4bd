"""Bounds of requests that several gRPC services share."""

from __future__ import annotations

from typing import Any

from resolute_serving.filters import MAX_FILTER_VALUES
from resolute_serving.validation import invalid

MAX_CONFIG_BYTES = 1024 * 1024
MAX_METADATA_BYTES = 256 * 1024


def check_config_size(config_yaml: str) -> None:
    """Refuses a config that is too large to be parsed."""
    # No text has fewer bytes than characters: megabytes are not copied to be refused.
    size = len(config_yaml)
    if size <= MAX_CONFIG_BYTES:
        size = len(config_yaml.encode())
    if size > MAX_CONFIG_BYTES:
        raise invalid("config_yaml", f"config_yaml has at least {size} bytes; it may have {MAX_CONFIG_BYTES}")


def check_filter(request: Any, field: str) -> None:
    """Refuses a filter with too many values."""
    count = len(getattr(request, field))
    if count > MAX_FILTER_VALUES:
        raise invalid(field, f"{field} has {count} values; it may have {MAX_FILTER_VALUES}")


def check_metadata_size(request: Any) -> None:
    """Refuses free metadata that is too large."""
    size = request.metadata.ByteSize()
    if size > MAX_METADATA_BYTES:
        raise invalid("metadata", f"metadata has {size} bytes; it may have {MAX_METADATA_BYTES}")
