"""Encrypts secrets in a database, with a key outside of it.

Of several keys, the first one encrypts and all of them decrypt. So a key can be rotated.
"""

from __future__ import annotations

import base64
import binascii
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import FailedPreconditionError, InvalidArgumentError

_NONCE_BYTES = 12
_KEY_BYTES = 32
_MOST_KEYS = 8
_COMMAND_SECONDS = 60.0
_SIZES = range(_KEY_BYTES, _MOST_KEYS * _KEY_BYTES + 1, _KEY_BYTES)
"""Bytes of a file of keys."""
FILE_SETTING = "RESOLUTE_SECRETS_KEY_FILE"
COMMAND_SETTING = "RESOLUTE_SECRETS_KEY_COMMAND"


class Sealer:
    """Encrypts and decrypts small secrets with AES-256-GCM.

    Args:
        keys: Keys of 32 bytes each; the first one encrypts.
        name: Name of the key, for messages.
    """

    def __init__(self, *keys: bytes, name: str = "the key of this cluster") -> None:
        self._cipher, *self._older = map(AESGCM, keys)
        self._name = name

    @property
    def is_rotated(self) -> bool:
        """Whether there are older keys, by which something may be encrypted still."""
        return bool(self._older)

    @classmethod
    def open(cls, file: Path) -> Sealer:
        """Reads the key of a file.

        Raises:
            FailedPreconditionError: The file is missing or holds something else.
        """
        if not file.exists():
            raise FailedPreconditionError(
                f"the key file {file} is missing; restore it from a backup, or where no secrets are stored "
                f"yet, make one: `(umask 077; openssl rand {_KEY_BYTES} > {shlex.quote(str(file))})`"
            )
        key = file.read_bytes()
        if len(key) not in _SIZES:
            raise FailedPreconditionError(
                f"{file} holds {len(key)} bytes and each key has {_KEY_BYTES}; restore it from a backup"
            )
        return cls(*(key[at : at + _KEY_BYTES] for at in range(0, len(key), _KEY_BYTES)), name=str(file))

    @classmethod
    def of_command(cls, command: str) -> Sealer:
        """Reads the keys that a command prints in base64, a line each; nothing of them is written anywhere.

        Raises:
            FailedPreconditionError: It fails, or prints something else.
        """
        try:
            run = subprocess.run(
                shlex.split(command), stdout=subprocess.PIPE, check=True, timeout=_COMMAND_SECONDS
            )
            keys = [base64.b64decode(line, validate=True) for line in run.stdout.split()]
        except subprocess.CalledProcessError as error:
            raise FailedPreconditionError(
                f"the command of {COMMAND_SETTING} exited with code {error.returncode}; it must print the key"
            ) from None
        except (IndexError, OSError, ValueError, binascii.Error, subprocess.TimeoutExpired) as error:
            # What it printed may be nearly a key.
            raise FailedPreconditionError(
                f"the command of {COMMAND_SETTING} gave no key ({type(error).__name__}); it must print "
                f"{_KEY_BYTES} bytes in base64, as `openssl rand -base64 {_KEY_BYTES}` makes them"
            ) from None
        sizes = [len(key) for key in keys]
        if sizes != [_KEY_BYTES] * len(keys) or not 1 <= len(keys) <= _MOST_KEYS:
            raise FailedPreconditionError(
                f"the command of {COMMAND_SETTING} printed {', '.join(map(str, sizes)) or 0} bytes in "
                f"base64; a key has {_KEY_BYTES}, and there are at most {_MOST_KEYS}, a line each"
            )
        return cls(*keys, name=f"the key that the command of {COMMAND_SETTING} prints")

    def seal(self, text: str, *, purpose: str) -> bytes:
        """Encrypts text; it is decrypted for the same purpose only, such as the row that it is in."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text.encode(), purpose.encode())

    def unseal(self, sealed: bytes, *, purpose: str) -> str:
        """Decrypts text.

        Raises:
            FailedPreconditionError: It was encrypted with another key, or for another purpose.
        """
        for cipher in (self._cipher, *self._older):
            text = _decrypted(cipher, sealed, purpose)
            if text is not None:
                return text
        raise FailedPreconditionError(
            f"a secret was not encrypted with {self._name}; restore that from the backup of the "
            "database, or set the secret again"
        )

    def renewed(self, sealed: bytes, *, purpose: str) -> bytes | None:
        """Encrypts with the first key what an older one has encrypted; None where no older one has."""
        if _decrypted(self._cipher, sealed, purpose) is not None:
            return None
        older = (_decrypted(cipher, sealed, purpose) for cipher in self._older)
        text = next((one for one in older if one is not None), None)
        return None if text is None else self.seal(text, purpose=purpose)


def _decrypted(cipher: AESGCM, sealed: bytes, purpose: str) -> str | None:
    nonce, encrypted = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        return cipher.decrypt(nonce, encrypted, purpose.encode()).decode()
    except InvalidTag:
        return None


@dataclass(frozen=True, kw_only=True)
class SealingKey:
    """The location of a service's key."""

    file: Path | None = None
    """A file; None for one among the files of the service."""
    command: str = ""
    """A command that prints the key; empty for a file."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> SealingKey:
        """Reads these variables.

        RESOLUTE_SECRETS_KEY_FILE is the file of the key (``secrets.key`` in the data directory),
        RESOLUTE_SECRETS_KEY_COMMAND a command that prints the key in base64, in place of a file (none). Keys
        that were rotated out may follow it, in a file as further bytes, printed as further lines.

        Raises:
            InvalidArgumentError: Both are set.
        """
        file, command = variables.get(FILE_SETTING, ""), variables.get(COMMAND_SETTING, "")
        if file and command:
            raise InvalidArgumentError(
                f"{FILE_SETTING} and {COMMAND_SETTING} are both set; unset one of them"
            )
        return cls(file=Path(file) if file else None, command=command)

    def open(self, default: Path) -> Sealer:
        """Reads the key.

        Args:
            default: The file where no other is named; it is made if it is missing, for its owner alone.

        Raises:
            FailedPreconditionError: There is no key.
        """
        if self.command:
            return Sealer.of_command(self.command)
        # A file that is named and missing may be one that is not mounted yet, or a mistyped name.
        if self.file is None and not default.exists():
            default.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(default, AESGCM.generate_key(8 * _KEY_BYTES), mode=0o600, sync=True)
        return Sealer.open(self.file or default)
