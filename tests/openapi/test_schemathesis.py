"""The live gateway answers as its OpenAPI document says. ``make openapi`` runs it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from faults.fuzz.campaign import end_processes
from support.services.gateway import gateway
from support.services.in_process import serving

from resolute_embedded.blueprints import BLUEPRINTS

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_the_gateway_answers_as_its_document_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")

    async def scenario() -> tuple[int, str]:
        async with serving(BLUEPRINTS, tmp_path) as running, gateway(running.address) as http:
            url = f"http://127.0.0.1:{http.port}"
            process = await asyncio.create_subprocess_exec(
                *(str(Path(sys.executable).parent / "schemathesis"), "run", f"{url}/openapi.json"),
                *("--url", url, "--header", f"Authorization: Bearer {running.user_token()}"),
                *("--checks", CHECKS, "--phases", "fuzzing", "--max-examples", "5", "--no-color"),
                *("--mode", "positive", "--continue-on-failure", "--seed", "1"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            said, _ = await process.communicate()
            end_processes(tmp_path)
            assert process.returncode is not None
            return process.returncode, said.decode()

    code, said = asyncio.run(scenario())
    print(said[-3000:])
    assert code == 0, said[-20_000:]
