"""The limit on open files of a service, and of the runs that it starts."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import json, resource
from resolute.contracts.run.open_files import raise_limit, restore_limit
limit = lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))
environ = {}
raise_limit(environ)
of_the_service = limit()
raise_limit(environ)  # by a service that a service starts
restore_limit(environ)
print(json.dumps([of_the_service, limit()]))
restore_limit({})
print(limit())
"""


def test_a_service_has_the_hard_limit_and_its_runs_the_soft_one() -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    first, second = ran.stdout.splitlines()
    assert json.loads(first) == [400, 200]
    assert second == "200"
