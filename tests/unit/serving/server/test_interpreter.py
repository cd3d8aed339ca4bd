"""The process of a service gives back the memory that large messages took."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from resolute_serving.server.interpreter import put_calls_first

def mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20

put_calls_first()
bytes(8 << 20)  # one large message, after which glibc by itself keeps smaller ones in its heap
before = mib()
messages = [b"m" * (4 << 20) for _ in range(32)]
kept = [b"k" * 4096 for _ in range(64)]
assert mib() - before > 100
del messages
print(mib() - before)
"""


def test_memory_of_large_messages_is_given_back() -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells the memory of a process in /proc")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 16
