from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

from support.services.processes.started import environment, service_process

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as messages
from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.rpc.channel import open_channel
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import ServiceAccount


def test_the_service_runs_alone_after_its_database_was_upgraded(tmp_path: Path) -> None:
    cluster_id, key_file = str(uuid.uuid4()), tmp_path / "key.pem"
    variables = {
        "RESOLUTE_CLUSTER_ID": cluster_id,
        "RESOLUTE_DATA_DIR": str(tmp_path / "data"),
        "RESOLUTE_SIGNING_KEY_FILE": str(key_file),
    }
    signer = TokenSigner(load_or_create_key(key_file), cluster_id=cluster_id, clock=SYSTEM_CLOCK)
    token = signer.service(ServiceAccount("experiments"), ttl=600)
    command = [sys.executable, "-m", "resolute_checkpoints"]
    refused = subprocess.run(
        command, env=environment(variables), capture_output=True, text=True, timeout=60, check=False
    )
    assert refused.returncode != 0
    assert "run `resolute db upgrade`" in refused.stderr
    subprocess.run([*command, "--upgrade"], env=environment(variables), timeout=60, check=True)
    with service_process("resolute_checkpoints", variables) as address:
        channel = open_channel(address, token=lambda: token)
        try:
            stub = CheckpointsServiceStub(channel)
            answer = stub.FenceTrial(messages.FenceTrialRequest(trial_id=str(uuid.uuid4()), min_run=1))
            assert not answer.HasField("latest_checkpoint")
        finally:
            channel.close()
