"""A page for each service of the contract, from the comments of its proto."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import descriptor_pb2

from docs_site.pages import ROOT

_Path = tuple[int, ...]
_MESSAGE, _SERVICE, _FIELD, _METHOD, _NESTED = 4, 6, 2, 2, 3


def pages() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of a page for each service, and of their list."""
    rows = []
    for file in _files():
        comments = {
            tuple(location.path): location.leading_comments.strip()
            for location in file.source_code_info.location
        }
        for number, service in enumerate(file.service):
            text = "\n".join(_service(file, service, (_SERVICE, number), comments))
            rows.append(f"| [{service.name}]({service.name}.md) | `{file.package}` |")
            yield f"{service.name}.md", text
    yield "README.md", "\n".join(["# Services", "", "| service | package |", "|---|---|", *sorted(rows), ""])


def _files() -> list[descriptor_pb2.FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "contract.binpb"
        buf = Path(sys.executable).parent / "buf"
        subprocess.run([buf, "build", "--output", image], cwd=ROOT, check=True)
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(image.read_bytes())
    return [file for file in descriptors.file if file.package.startswith("resolute.api.")]


def _service(
    file: descriptor_pb2.FileDescriptorProto,
    service: descriptor_pb2.ServiceDescriptorProto,
    path: _Path,
    comments: dict[_Path, str],
) -> Iterator[str]:
    yield f"# {service.name}\n\n{_prose(comments.get(path, ''))}\n\nPackage `{file.package}`.\n"
    for number, method in enumerate(service.method):
        request, response = (name.rpartition(".")[2] for name in (method.input_type, method.output_type))
        given = f"{'stream ' if method.client_streaming else ''}{request}"
        answered = f"{'stream ' if method.server_streaming else ''}{response}"
        yield f"## {method.name}\n\n{_prose(comments.get((*path, _METHOD, number), ''))}\n"
        yield f"`{given}` → `{answered}`\n"
    for number, message in enumerate(file.message_type):
        yield from _message(message, (_MESSAGE, number), comments, level="##")


def _message(
    message: descriptor_pb2.DescriptorProto, path: _Path, comments: dict[_Path, str], *, level: str
) -> Iterator[str]:
    if message.options.map_entry:
        return
    yield f"{level} Message {message.name}\n\n{_prose(comments.get(path, ''))}\n"
    if message.field:
        yield "| field | type | |\n|---|---|---|"
        for number, field in enumerate(message.field):
            comment = comments.get((*path, _FIELD, number), "").replace("\n", " ").replace("|", "\\|")
            yield f"| `{field.name}` | `{_kind(field)}` | {_prose(comment)} |"
        yield ""
    for number, nested in enumerate(message.nested_type):
        yield from _message(nested, (*path, _NESTED, number), comments, level="###")


def _kind(field: descriptor_pb2.FieldDescriptorProto) -> str:
    named = field.type_name.rpartition(".")[2]
    kind = named or descriptor_pb2.FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    repeated = field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    return f"repeated {kind}" if repeated else kind


def _prose(comment: str) -> str:
    return comment.replace("<", "&lt;")
