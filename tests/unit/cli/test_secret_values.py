"""Values of secrets arrive as they are on standard input."""

from __future__ import annotations

import subprocess
import sys

READS = """
import sys
from resolute.cli.accounts.secrets import read_value

sys.stdout.buffer.write(read_value().encode())
"""


def read(value: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", READS]
    return subprocess.run(command, input=value, capture_output=True, check=False, timeout=60)


def test_one_newline_at_the_end_is_left_out_and_others_stay_as_they_are() -> None:
    assert read(b"token\n").stdout == b"token"
    assert read(b"first\r\nsecond\r\n").stdout == b"first\r\nsecond"
    assert read("clé\n\n".encode()).stdout == "clé\n".encode()


def test_bytes_that_are_no_text_are_refused_with_the_remedy() -> None:
    refused = read(b"\xff\xfe0123")
    assert refused.returncode != 0
    assert (
        b"InvalidArgumentError: the value is not text in UTF-8: set what `base64 FILE` prints"
        in refused.stderr
    )
