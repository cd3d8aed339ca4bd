"""Packing a model definition."""

from __future__ import annotations

import io
import os
import socket
import tarfile
import tempfile
from pathlib import Path

import pytest
from support.file_systems import as_somebody_else

from resolute.client.submission.file_tree import ModelDefinitionError
from resolute.client.submission.ignore_rules import IgnoreRules
from resolute.client.submission.packing import CHUNK_BYTES, configured_limit, pack
from resolute.contracts.files.archive import extract_archive
from resolute.contracts.sizes import human_size
from resolute.errors import InvalidArgumentError, QuotaError


def packed(model_definition: Path | None, *includes: Path, limit: int = 1 << 20) -> bytes:
    with pack(model_definition, includes, limit=limit) as archive:
        content = b"".join(archive.chunks())
        assert archive.size == len(content)
        return content


def names(content: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        return archive.getnames()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "code"
    (path / "net").mkdir(parents=True)
    (path / "train.py").write_text("import net\n")
    (path / "net" / "model.py").write_text("width = 8\n")
    return path


def test_content_is_packed_in_order_and_comes_back(code: Path, tmp_path: Path) -> None:
    content = packed(code)
    assert names(content) == ["net", "net/model.py", "train.py"]
    extract_archive(io.BytesIO(content), tmp_path / "out")
    assert (tmp_path / "out" / "net" / "model.py").read_text() == "width = 8\n"


def test_equal_content_gives_equal_bytes(code: Path, tmp_path: Path) -> None:
    first = packed(code)
    os.utime(code / "train.py", (1, 1))
    (code / "train.py").chmod(0o600)
    assert packed(code) == first
    (code / "train.py").chmod(0o755)
    assert packed(code) != first


def test_no_code_is_an_empty_archive() -> None:
    assert names(packed(None)) == []


def test_a_single_file_may_be_the_code(code: Path) -> None:
    assert names(packed(code / "train.py")) == ["train.py"]


def test_includes_come_into_the_root_under_their_own_names(code: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "util.py").touch()
    (shared / ".detignore").write_text("*.log\n")
    (shared / "run.log").touch()
    extra = tmp_path / "extra.txt"
    extra.touch()
    assert names(packed(code, shared, extra)) == [
        "extra.txt", "net", "net/model.py", "shared", "shared/util.py", "train.py",
    ]  # fmt: skip


def test_an_include_of_the_parent_has_the_parents_name(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "parent" / "below"
    empty.mkdir(parents=True)
    monkeypatch.chdir(empty)
    assert names(packed(code, Path(".."))) == ["net", "net/model.py", "parent", "parent/below", "train.py"]


def test_two_things_of_one_name_are_refused(code: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "net"
    other.mkdir(parents=True)
    with pytest.raises(ValueError, match=r"code and .*other/net both bring 'net' into the model definition"):
        packed(code, other)
    with pytest.raises(ValueError, match="both bring 'other'"):
        packed(None, tmp_path / "other", tmp_path / "other")


@pytest.mark.parametrize(
    "path",
    ["__pycache__/x.pyc", "a.pyc", "net/b.pyo", ".git/HEAD", ".vscode/x", ".idea/x", ".mypy_cache/x",
     "shared_fs", "terraform.tfstate", "m$py.class", ".detignore"],
)  # fmt: skip
def test_what_nobody_wants_to_submit_is_left_out(code: Path, path: str) -> None:
    before = names(packed(code))
    (code / path).parent.mkdir(exist_ok=True)
    (code / path).touch()
    assert names(packed(code)) == before


def test_shared_fs_is_left_out_at_the_root_only(code: Path) -> None:
    (code / "net" / "shared_fs").touch()
    assert "net/shared_fs" in names(packed(code))


def test_detignore_has_the_rules_of_gitignore(code: Path) -> None:
    (code / ".detignore").write_text("# data\ndata/\n*.bin\n!keep.bin\n/train.log\n")
    (code / "data").mkdir()
    for name in ("data/big", "a.bin", "keep.bin", "train.log", "net/train.log"):
        (code / name).touch()
    assert names(packed(code)) == ["keep.bin", "net", "net/model.py", "net/train.log", "train.py"]


def test_a_byte_order_mark_of_detignore_is_no_part_of_its_first_pattern(code: Path) -> None:
    (code / ".detignore").write_bytes(b"\xef\xbb\xbfdata\r\n*.bin\r\n")
    rules = IgnoreRules(code)
    assert rules.skips("data", directory=True)
    assert rules.skips("model.bin", directory=False)


def test_detignore_below_the_root_is_a_file_like_others(code: Path) -> None:
    (code / "net" / ".detignore").write_text("*\n")
    assert names(packed(code)) == ["net", "net/.detignore", "net/model.py", "train.py"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "latin-1"])
def test_a_pattern_file_in_another_encoding_is_named_with_the_remedy(code: Path, encoding: str) -> None:
    (code / ".detignore").write_bytes("données\n".encode(encoding))
    with pytest.raises(InvalidArgumentError, match=r"code/\.detignore is not text in UTF-8: save it in that"):
        packed(code)


def test_too_much_is_refused_with_what_is_large(code: Path) -> None:
    (code / "weights.bin").write_bytes(bytes(300_000))
    with pytest.raises(ValueError, match=r"exceeds the maximum allowed size of 97\.7 KiB") as caught:
        packed(code, limit=100_000)
    assert "weights.bin (293.0 KiB)" in str(caught.value)
    assert isinstance(caught.value, InvalidArgumentError)


def test_sparse_giants_are_refused_without_being_read(code: Path) -> None:
    with (code / "giant").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ModelDefinitionError, match="exceeds the maximum allowed size"):
        packed(code)


def test_links_inside_are_followed(code: Path) -> None:
    (code / "latest.py").symlink_to("train.py")
    (code / "alias").symlink_to(code / "net")
    content = packed(code)
    assert names(content) == ["alias", "alias/model.py", "latest.py", "net", "net/model.py", "train.py"]
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        assert all(member.isfile() or member.isdir() for member in archive)


@pytest.mark.parametrize("target", ["../secret", "/etc", "/etc/passwd"])
def test_links_that_lead_outside_are_refused(code: Path, target: str) -> None:
    (code.parent / "secret").touch()
    (code / "link").symlink_to(target)
    with pytest.raises(ModelDefinitionError, match=r"the link .*/code/link leads to .*, outside of"):
        packed(code)
    (code / ".detignore").write_text("link\n")
    assert "link" not in names(packed(code))


def test_links_that_lead_back_are_refused(code: Path) -> None:
    (code / "net" / "up").symlink_to("..")
    with pytest.raises(ModelDefinitionError, match=r"net/up leads back to .*/code, which contains it"):
        packed(code)


def test_links_that_lead_nowhere_are_refused(code: Path) -> None:
    (code / "broken").symlink_to("gone")
    with pytest.raises(ModelDefinitionError, match=r"the link .*/broken leads nowhere \(No such file"):
        packed(code)
    (code / "broken").unlink()
    (code / "broken").symlink_to("broken")
    with pytest.raises(ModelDefinitionError, match="leads nowhere"):
        packed(code)


def test_sockets_and_pipes_are_refused(code: Path) -> None:
    os.mkfifo(code / "pipe")
    with pytest.raises(ModelDefinitionError, match="a socket, pipe or device and cannot be submitted"):
        packed(code)
    (code / "pipe").unlink()
    directory = tempfile.mkdtemp(prefix="s-")  # socket paths must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{directory}/sock")
        with pytest.raises(ModelDefinitionError, match="cannot be submitted"):
            packed(Path(directory))
    Path(directory, "sock").unlink()
    Path(directory).rmdir()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelDefinitionError, match=r"cannot read .*nowhere: No such file or directory"):
        packed(tmp_path / "nowhere")
    with pytest.raises(ModelDefinitionError, match=r"cannot read .*nothing: No such file or directory"):
        packed(tmp_path, tmp_path / "nothing")
    with pytest.raises(ModelDefinitionError, match="neither a directory nor a file"):
        packed(Path("/dev/null"))


def test_names_that_are_not_text_are_refused(code: Path) -> None:
    os.close(os.open(os.fsencode(code) + b"/caf\xe9", os.O_CREAT))
    with pytest.raises(ModelDefinitionError, match="is not valid UTF-8"):
        packed(code)


@pytest.mark.parametrize("name", ["secret.py", "closed"])
def test_what_may_not_be_read_is_named(name: str) -> None:
    directory = Path(tempfile.mkdtemp(prefix="resolute-packing-"))
    directory.chmod(0o755)
    secret, closed = directory / "secret.py", directory / "closed"
    secret.touch()
    closed.mkdir()
    packed(directory)
    (directory / name).chmod(0)
    try:
        with (
            as_somebody_else(),
            pytest.raises(ValueError, match=f"cannot read {directory / name}: Permission denied"),
        ):
            packed(directory)
    finally:
        secret.unlink()
        closed.rmdir()
        directory.rmdir()


def test_a_full_disk_is_named(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(tempfile, "SpooledTemporaryFile", lambda **_: full)
        with pytest.raises(
            QuotaError, match=r"cannot pack the model definition in .*: No space left on device"
        ):
            pack(code)


def test_chunks_are_bounded_and_can_be_read_twice(code: Path) -> None:
    (code / "noise").write_bytes(os.urandom(3 * CHUNK_BYTES))
    with pack(code, limit=1 << 30) as archive:
        chunks = list(archive.chunks())
        assert max(len(chunk) for chunk in chunks) == CHUNK_BYTES
        assert list(archive.chunks()) == chunks
        assert archive.entries == 4
        assert archive.content_size > 3 * CHUNK_BYTES


def test_the_limit_comes_from_the_environment() -> None:
    assert configured_limit({}) == 1 << 30
    assert configured_limit({"RESOLUTE_MODEL_DEFINITION_LIMIT": "12"}) == 12
    with pytest.raises(ModelDefinitionError, match="must be a number of bytes"):
        configured_limit({"RESOLUTE_MODEL_DEFINITION_LIMIT": "1GB"})


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (95 << 20, "95.0 MiB"), (1 << 50, "1024.0 TiB")]
)
def test_sizes_are_written_for_people(size: int, text: str) -> None:
    assert human_size(size) == text
