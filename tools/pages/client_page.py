"""Writes the classes of the Python client with their members into docs/client.md; ``--check`` compares."""

import inspect
from collections.abc import Iterator

from generated_section import GeneratedSection

from resolute import client

SECTION = GeneratedSection(
    "docs/client.md",
    "<!-- reference: written by tools/pages/client_page.py -->",
    "<!-- end of the reference -->",
    remedy="make proto",
)
CLASSES = (
    "Client",
    "Experiment",
    "Trial",
    "Chart",
    "Checkpoint",
    "Model",
    "ModelVersion",
    "Workspace",
    "Project",
    "User",
)


def reference() -> str:
    """A table for each class: what its members are called with, and the first sentence about each."""
    return "\n\n".join(_table(getattr(client, name)) for name in CLASSES)


def _table(kind: type) -> str:
    rows = [f"| `{called}` | {meaning} |" for called, meaning in sorted(_members(kind))]
    return "\n".join([f"### {kind.__name__}", "", _first_sentence(kind), "", "| | |", "|---|---|", *rows])


def _members(kind: type) -> Iterator[tuple[str, str]]:
    for name, value in inspect.getmembers(kind):
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if isinstance(value, property):
            yield name, _first_sentence(value)
        elif callable(value):
            names = [
                parameter.name if parameter.default is parameter.empty else f"{parameter.name}="
                for parameter in inspect.signature(value).parameters.values()
                if parameter.name not in {"self", "cls"}
            ]
            yield f"{name}({', '.join(names)})", _first_sentence(value)


def _first_sentence(value: object) -> str:
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    SECTION.update(reference())
