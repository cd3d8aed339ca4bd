from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from resolute.contracts.files.archive import ArchiveLimits, check_archive, extract_archive
from resolute.errors import DataLossError, InvalidArgumentError, QuotaError


def packed(*members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member in members:
            if isinstance(member, tuple):
                archive.addfile(member[0], io.BytesIO(member[1]))
            else:
                archive.addfile(member)
    buffer.seek(0)
    return buffer


def file(name: str, content: bytes = b"content", *, mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(content), mode, 1_600_000_000
    return info, content


def special(name: str, kind: bytes, *, target: str = "", mode: int = 0o755) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def symlink(name: str, target: str) -> tarfile.TarInfo:
    return special(name, tarfile.SYMTYPE, target=target)


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_files_directories_modes_and_times_arrive_as_packed(tmp_path: Path) -> None:
    archive = packed(
        special(".", tarfile.DIRTYPE),
        special("./pkg", tarfile.DIRTYPE, mode=0o750),
        file("./pkg/__init__.py", b""),
        file("run.sh", b"#!/bin/sh\n", mode=0o755),
        file("deep/er/ünïcode name.py", b"x"),
    )
    summary = extract_archive(archive, tmp_path / "work")
    work = tmp_path / "work"
    assert contents(work) == {
        "pkg/__init__.py": b"",
        "run.sh": b"#!/bin/sh\n",
        "deep/er/ünïcode name.py": b"x",
    }
    assert os.access(work / "run.sh", os.X_OK)
    assert (work / "run.sh").stat().st_mtime == 1_600_000_000
    assert (work / "pkg").stat().st_mode & 0o777 == 0o750
    assert (summary.entries, summary.size) == (4, 11)


def test_special_permission_bits_are_dropped_and_the_owner_can_always_write(tmp_path: Path) -> None:
    extract_archive(
        packed(special("d", tarfile.DIRTYPE, mode=0o000), file("d/f", mode=0o4401)), tmp_path / "work"
    )
    assert (tmp_path / "work/d").stat().st_mode & 0o7777 == 0o700
    assert (tmp_path / "work/d/f").stat().st_mode & 0o7777 == 0o601


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (file("/etc/evil"), "outside of it"),
        (file("../evil"), "outside of it"),
        (file("a/../../evil"), "outside of it"),
        (file("a/.."), "outside of it"),
        (symlink("link", "/etc/passwd"), "outside of it"),
        (symlink("link", "../secret"), "outside of it"),
        (symlink("a/b/link", "../../../secret"), "outside of it"),
        (symlink("link", "a/../../secret"), "outside of it"),
        (symlink("link", ""), "outside of it"),
        (special("hard", tarfile.LNKTYPE, target="/etc/passwd"), "outside of it"),
        (special("hard", tarfile.LNKTYPE, target="../secret"), "outside of it"),
        (special("pipe", tarfile.FIFOTYPE), "device or a pipe"),
        (special("char", tarfile.CHRTYPE), "device or a pipe"),
        (special("block", tarfile.BLKTYPE), "device or a pipe"),
        (file("."), "without a name"),
    ],
)
def test_an_entry_that_is_not_safe_is_refused_by_name(
    tmp_path: Path, member: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes], reason: str
) -> None:
    (tmp_path / "secret").write_text("secret")
    name = member[0].name if isinstance(member, tuple) else member.name
    with pytest.raises(InvalidArgumentError, match=reason) as refused:
        extract_archive(packed(file("good.py"), member), tmp_path / "work")
    assert name in str(refused.value)
    with pytest.raises(InvalidArgumentError, match=reason):
        check_archive(packed(file("good.py"), member))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["secret", "work"]
    assert contents(tmp_path / "work") == {"good.py": b"content"}


def test_a_file_cannot_be_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    with pytest.raises(InvalidArgumentError, match="two different entries named 'dir'"):
        extract_archive(
            packed(symlink("dir", "elsewhere"), file("dir/evil"), file("elsewhere/x")), tmp_path / "work"
        )
    assert list(outside.iterdir()) == []


def test_links_that_lead_out_only_together_are_refused_and_removed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    archive = packed(
        file("a/b/file"),
        symlink("a/b/up", "../.."),  # the root itself: inside
        symlink("z", "a/b/up/../secret"),  # reads like "a/b/secret", and leads out
    )
    with pytest.raises(InvalidArgumentError, match="'z'"):
        extract_archive(archive, tmp_path / "work")
    assert not any(p.is_symlink() for p in (tmp_path / "work").rglob("*"))


def test_links_inside_are_kept_even_when_they_dangle_or_come_first(tmp_path: Path) -> None:
    extract_archive(
        packed(
            symlink("first", "pkg/mod.py"),
            file("pkg/mod.py", b"code"),
            symlink("pkg/up", "../data/./x"),
            symlink("loop", "loop"),
            special("hard", tarfile.LNKTYPE, target="pkg/mod.py"),
        ),
        tmp_path / "work",
    )
    work = tmp_path / "work"
    assert (work / "first").read_bytes() == b"code"
    assert (work / "hard").read_bytes() == b"code"
    assert (work / "pkg/up").readlink() == Path("../data/./x")
    assert (work / "loop").is_symlink()


@pytest.mark.parametrize(
    "members",
    [
        (file("a"), file("a/b")),
        (file("a/b"), file("a")),
        (file("a"), symlink("a", "b")),
        (symlink("a", "b"), file("a")),
        (special("a", tarfile.DIRTYPE), symlink("a", "b")),
        (file("b"), file("a"), special("a", tarfile.LNKTYPE, target="b")),
    ],
)
def test_one_path_cannot_be_two_things(tmp_path: Path, members: tuple[tarfile.TarInfo, ...]) -> None:
    with pytest.raises(InvalidArgumentError, match="two different entries"):
        extract_archive(packed(*members), tmp_path / "work")


def test_the_last_file_of_one_name_counts(tmp_path: Path) -> None:
    extract_archive(
        packed(file("a", b"old"), special("h", tarfile.LNKTYPE, target="a"), file("a", b"new")),
        tmp_path / "work",
    )
    assert contents(tmp_path / "work") == {"a": b"new", "h": b"old"}


def test_a_hard_link_to_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no earlier file"):
        extract_archive(packed(special("h", tarfile.LNKTYPE, target="later")), tmp_path / "work")


def test_a_bomb_of_zeros_is_stopped_by_what_its_header_says(tmp_path: Path) -> None:
    limits = ArchiveLimits(max_bytes=1 << 20)
    archive = packed(file("zeros", bytes(2 << 20)))
    assert len(archive.getvalue()) < 10_000
    with pytest.raises(QuotaError, match="1048576 bytes"):
        extract_archive(archive, tmp_path / "work", limits=limits)
    assert contents(tmp_path / "work") == {}


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_would_fill_the_memory_is_refused_unread(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("header")
    header.type, header.size = kind, 64 << 20
    raw = io.BytesIO(gzip.compress(header.tobuf() + bytes(64 << 20), 1))
    with pytest.raises(InvalidArgumentError, match="more than 65536 bytes of headers"):
        extract_archive(raw, tmp_path / "work")
    assert raw.tell() < len(raw.getvalue())


def test_numbers_in_headers_that_are_none_are_refused_or_left_out(tmp_path: Path) -> None:
    late, content = file("late")
    late.pax_headers = {"mtime": "1e400"}
    odd, _ = file("odd")
    odd.pax_headers = {"GNU.sparse.map": "9" * 5000}
    extract_archive(packed(late_entry := (late, content)), tmp_path / "late")
    assert (tmp_path / "late/late").stat().st_mtime == 0
    with pytest.raises(DataLossError, match="not a whole gzipped tar archive"):
        check_archive(packed(late_entry, (odd, content)))


def test_padding_behind_the_end_counts_too() -> None:
    archive = packed(file("a"))
    bomb = archive.getvalue() + gzip.compress(bytes(8 << 20))
    with pytest.raises(QuotaError, match="unpacks to more than"):
        check_archive(io.BytesIO(bomb), limits=ArchiveLimits(max_bytes=1 << 20, max_entries=10))


@pytest.mark.parametrize(("holes", "refusal"), [(1, "a sparse file"), (200_000, "without --sparse")])
def test_a_sparse_file_is_refused_whatever_its_map_claims(holes: int, refusal: str) -> None:
    info = tarfile.TarInfo("sparse")
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "sparse",
        "GNU.sparse.realsize": str(1 << 40),
    }
    sparse_map = b"%d\n" % holes + b"0\n0\n" * holes
    info.size = len(sparse_map)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info, io.BytesIO(sparse_map))
    buffer.seek(0)
    with pytest.raises(InvalidArgumentError, match=refusal):
        check_archive(buffer)


def test_headers_up_to_the_limit_are_read() -> None:
    entries = [file(f"f{i}", bytes(700)) for i in range(20)]
    for info, _ in entries:
        info.pax_headers = {"comment": "x" * 60_000}
    assert check_archive(packed(*entries)).entries == 20


def test_headers_of_headers_are_refused_before_they_add_up() -> None:
    name = tarfile.TarInfo("name")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, tarfile.BLOCKSIZE
    chain = (name.tobuf() + b"n".ljust(tarfile.BLOCKSIZE, b"\0")) * 10_000
    with pytest.raises(InvalidArgumentError, match="more than 65536 bytes of headers"):
        check_archive(io.BytesIO(gzip.compress(chain + tarfile.TarInfo("n").tobuf())))


def test_ten_thousand_files_arrive_and_one_more_than_allowed_does_not(tmp_path: Path) -> None:
    def archive(count: int) -> io.BytesIO:
        return packed(*(file(f"pkg{i % 100}/mod{i}.py", b"%d" % i) for i in range(count)))

    summary = extract_archive(archive(10_000), tmp_path / "work", limits=ArchiveLimits(max_entries=10_000))
    assert summary.entries == 10_000
    assert (tmp_path / "work/pkg99/mod9999.py").read_bytes() == b"9999"
    with pytest.raises(QuotaError, match="more than 10000 entries"):
        check_archive(archive(10_001), limits=ArchiveLimits(max_entries=10_000))


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "nothing", "no tar"])
def test_what_is_no_whole_archive_is_data_loss(tmp_path: Path, damage: str) -> None:
    whole = packed(file("a", os.urandom(100_000))).getvalue()
    damaged = {
        "cut": whole[: len(whole) // 2],
        "flip": whole[:-6] + bytes((whole[-6] ^ 1,)) + whole[-5:],
        "text": b"<html>502 Bad Gateway</html>",
        "nothing": b"",
        "no tar": gzip.compress(b"hello" * 1000),
    }[damage]
    with pytest.raises(DataLossError, match="not a whole gzipped tar archive"):
        extract_archive(io.BytesIO(damaged), tmp_path / "work")


def test_an_empty_archive_makes_an_empty_directory(tmp_path: Path) -> None:
    assert extract_archive(packed(), tmp_path / "work").entries == 0
    assert list((tmp_path / "work").iterdir()) == []


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="not empty"):
        extract_archive(packed(file("mine")), tmp_path)
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        (file("n" * 256), "a part of more than 255 bytes"),
        (file("d/" * 100 + "f"), "more than 100 parts"),
        (file("/".join(["x" * 200] * 20)), "takes more than 3072 bytes"),
        (special("d/" * 100 + "d", tarfile.DIRTYPE), "more than 100 parts"),
        (symlink("link", "t" * 4000), "takes more than 3072 bytes"),
        (special("hard", tarfile.LNKTYPE, target="t" * 256), "a part of more than 255 bytes"),
    ],
)
def test_names_that_a_disk_cannot_hold_are_refused_at_the_boundary(
    tmp_path: Path, member: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes], problem: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=problem) as refused:
        check_archive(packed(member))
    assert len(str(refused.value)) < 400
    with pytest.raises(InvalidArgumentError, match=problem):
        extract_archive(packed(member), tmp_path / "work")
    extract_archive(packed(file("n" * 255), file("d/" * 99 + "f")), tmp_path / "other")


def test_unpacking_can_be_interrupted(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError, match="interrupted"):
        extract_archive(
            packed(*(file(f"{i}") for i in range(10))),
            tmp_path / "work",
            interrupted=(tmp_path / "work/4").exists,
        )
    assert len(contents(tmp_path / "work")) == 5
