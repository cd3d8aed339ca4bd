"""Checks of object names: some stores refuse or change some names."""

from __future__ import annotations

_MAX_BYTES = 1024
_MAX_AZURE_CHARACTERS, _MAX_AZURE_PARTS = 1024, 254


def s3_problem(name: str) -> str:
    """What is wrong with a name in S3, as the end of a sentence; empty when nothing is."""
    size = len(name.encode())
    if size <= _MAX_BYTES:
        return ""
    return (
        f"takes {size} bytes with what comes before it in the bucket; "
        f"names of objects have at most {_MAX_BYTES}: use shorter names"
    )


def gcs_problem(name: str) -> str:
    """What is wrong with a name in Google Cloud Storage, likewise."""
    if "\r" in name or "\n" in name:
        return "holds a line break, which Google Cloud Storage takes in no name: rename it"
    return s3_problem(name)


def azure_problem(name: str) -> str:
    """What is wrong with a name in Azure Blob Storage, likewise."""
    parts = name.split("/")
    if "\\" in name:
        return "holds a backslash, which Azure Blob Storage takes for a slash: rename it"
    if any(part.endswith(".") for part in parts):
        return "has a part that ends in a dot, which Azure Blob Storage drops: rename it"
    if len(name) > _MAX_AZURE_CHARACTERS or len(parts) > _MAX_AZURE_PARTS:
        return (
            f"has {len(name)} characters in {len(parts)} parts with what comes before it; names of blobs "
            f"have at most {_MAX_AZURE_CHARACTERS} in {_MAX_AZURE_PARTS}: use shorter names"
        )
    return ""
