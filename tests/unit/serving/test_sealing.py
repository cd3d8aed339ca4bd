"""The key of the secrets in a database: a file, or what a command prints."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_serving.sealing import SealingKey

KEY = base64.b64encode(bytes(range(32))).decode()


def printing(text: str) -> str:
    return f"{sys.executable} -c \"print('{text}')\""


def test_the_default_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    default = tmp_path / "data" / "secrets.key"
    sealed = SealingKey().open(default).seal("a token", purpose="p")
    assert SealingKey().open(default).unseal(sealed, purpose="p") == "a token"
    assert default.stat().st_mode & 0o777 == 0o600
    assert len(default.read_bytes()) == 32


def test_a_file_that_is_named_is_never_made(tmp_path: Path) -> None:
    named, default = tmp_path / "elsewhere" / "key", tmp_path / "secrets.key"
    key = SealingKey.from_environment({"RESOLUTE_SECRETS_KEY_FILE": str(named)})
    with pytest.raises(
        FailedPreconditionError, match=r"elsewhere/key is missing; restore it .*openssl rand 32"
    ):
        key.open(default)
    assert not named.parent.exists()
    named.parent.mkdir()
    named.write_bytes(bytes(32))
    sealed = key.open(default).seal("a token", purpose="p")
    assert key.open(default).unseal(sealed, purpose="p") == "a token"
    assert not default.exists()


def test_a_command_prints_the_key_and_no_file_is_made(tmp_path: Path) -> None:
    default = tmp_path / "secrets.key"
    key = SealingKey.from_environment({"RESOLUTE_SECRETS_KEY_COMMAND": printing(KEY)})
    sealed = key.open(default).seal("a token", purpose="p")
    assert key.open(default).unseal(sealed, purpose="p") == "a token"
    assert not default.exists()
    other = SealingKey(command=printing(base64.b64encode(bytes(32)).decode()))
    with pytest.raises(FailedPreconditionError, match="restore that from the backup"):
        other.open(default).unseal(sealed, purpose="p")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)'", "exited with code 3"),
        (printing("no base64 at all"), "gave no key"),
        (printing(KEY[:20]), "printed 15 bytes"),
        ("/nonexistent/vault", "gave no key .FileNotFoundError"),
        ("vault 'unclosed", "gave no key"),
        (" ", "gave no key"),
    ],
)
def test_a_command_that_prints_no_key_is_refused(command: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FailedPreconditionError, match=message) as refused:
        SealingKey(command=command).open(tmp_path / "secrets.key")
    assert KEY[:8] not in str(refused.value)


def test_one_of_both_is_set() -> None:
    both = {"RESOLUTE_SECRETS_KEY_FILE": "/key", "RESOLUTE_SECRETS_KEY_COMMAND": "vault"}
    with pytest.raises(InvalidArgumentError, match="are both set"):
        SealingKey.from_environment(both)


def test_the_first_of_several_keys_encrypts_and_all_decrypt(tmp_path: Path) -> None:
    file = tmp_path / "secrets.key"
    file.write_bytes(bytes(range(32)))
    sealed = SealingKey(file=file).open(file).seal("a token", purpose="p")
    file.write_bytes(bytes(32) + bytes(range(32)))
    both = SealingKey(file=file).open(file)
    printed = f"{base64.b64encode(bytes(32)).decode()}\\n{KEY}"
    for rotated in (both, SealingKey(command=printing(printed)).open(file)):
        assert rotated.is_rotated
        assert rotated.unseal(sealed, purpose="p") == "a token"
    renewed = both.renewed(sealed, purpose="p")
    assert renewed is not None
    assert both.renewed(renewed, purpose="p") is None
    file.write_bytes(bytes(32))
    alone = SealingKey(file=file).open(file)
    assert not alone.is_rotated
    assert alone.unseal(renewed, purpose="p") == "a token"
    assert alone.renewed(sealed, purpose="p") is None, "of a key that is not there any more"
    with pytest.raises(FailedPreconditionError, match="was not encrypted with"):
        alone.unseal(sealed, purpose="p")


@pytest.mark.parametrize("size", [0, 16, 48, 32 * 9])
def test_a_file_of_another_size_than_of_keys_is_refused(tmp_path: Path, size: int) -> None:
    file = tmp_path / "secrets.key"
    file.write_bytes(bytes(size))
    with pytest.raises(FailedPreconditionError, match=f"holds {size} bytes and each key has 32"):
        SealingKey(file=file).open(file)
