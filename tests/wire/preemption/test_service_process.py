from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

from support.services.processes.started import service_process
from support.services.stand_ins.signal_source import SignalSource
from support.static_keys import StaticKeys

from resolute.api.preemption.v1.preemption_service_pb2 import SignalSubscription, WatchSignalsRequest
from resolute.api.preemption.v1.preemption_service_pb2_grpc import PreemptionServiceStub
from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.rpc.channel import open_channel
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner, TokenVerifier
from resolute_serving.context import ServiceAccount, TrialRun


def test_the_service_runs_alone_and_calls_with_a_token_of_its_account(tmp_path: Path) -> None:
    cluster_id, key_file = str(uuid.uuid4()), tmp_path / "key.pem"
    signer = TokenSigner(load_or_create_key(key_file), cluster_id=cluster_id, clock=SYSTEM_CLOCK)
    verifier = TokenVerifier(
        StaticKeys({signer.key_id: signer.public_key}), cluster_id=cluster_id, clock=SYSTEM_CLOCK
    )
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
            "RESOLUTE_EXPERIMENTS_ADDRESS": experiments.address,
        }
        process = service_process("resolute_preemption", variables)
        address = await asyncio.to_thread(process.__enter__)
        try:
            assert (await asyncio.to_thread(watch, address)).preempt
            (sent,) = experiments.tokens
            caller = await verifier.verify(sent.removeprefix("Bearer "))
            assert caller.principal == ServiceAccount("preemption")
        finally:
            await asyncio.to_thread(process.__exit__, None, None, None)
            await experiments.stop()

    asyncio.run(scenario())
