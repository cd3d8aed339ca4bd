from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

from support.services.service_process import service_process
from support.services.signal_source import SignalSource

from resolute.api.preemption.v1.preemption_service_pb2 import SignalSubscription, WatchSignalsRequest
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceStub
from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.rpc.channel import open_channel
from resolute_serving.auth.tokens import TokenSigner, load_or_create_key
from resolute_serving.context import ServiceAccount, TrialRun


def test_the_service_runs_alone_and_calls_with_the_token_in_its_file(tmp_path: Path) -> None:
    cluster_id, key_file, token_file = str(uuid.uuid4()), tmp_path / "key.pem", tmp_path / "token"
    signer = TokenSigner(load_or_create_key(key_file), cluster_id=cluster_id, clock=SYSTEM_CLOCK)
    token_file.write_text(signer.service(ServiceAccount("preemption"), ttl=600) + "\n")
    run = TrialRun(trial_id="t", run=1, experiment_id="e", allocation_id="a", workspace="w")
    token = signer.trial(run, ttl=600)

    def watch(address: str) -> Signal:
        channel = open_channel(address, token=lambda: token)
        try:
            request = WatchSignalsRequest(subscriptions=[SignalSubscription(key="a", allocation_id="a")])
            for response in PreemptionServiceStub(channel).WatchSignals(request, timeout=20):
                if response.HasField("signal"):
                    return response.signal
        finally:
            channel.close()
        raise AssertionError("the watch ended")

    async def scenario() -> None:
        experiments = SignalSource()
        experiments.signals["a"] = Signal(allocation_id="a", revision=1, preempt=True)
        await experiments.start()
        variables = {
            "RESOLUTE_CLUSTER_ID": cluster_id,
            "RESOLUTE_DATA_DIR": str(tmp_path / "data"),
            "RESOLUTE_SIGNING_KEY_FILE": str(key_file),
            "RESOLUTE_SERVICE_TOKEN_FILE": str(token_file),
            "RESOLUTE_EXPERIMENTS_ADDRESS": experiments.address,
        }
        process = service_process("resolute_preemption", variables)
        address = await asyncio.to_thread(process.__enter__)
        try:
            assert (await asyncio.to_thread(watch, address)).preempt
            assert experiments.tokens == [f"Bearer {token_file.read_text().strip()}"]
        finally:
            await asyncio.to_thread(process.__exit__, None, None, None)
            await experiments.stop()

    asyncio.run(scenario())
