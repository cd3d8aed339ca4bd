"""Launch specs that are in run directories from before the contract was frozen."""

from __future__ import annotations

import struct

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec


def test_a_spec_from_before_durations_still_tells_which_run_it_was() -> None:
    stored = b"".join(
        (
            b"\x2a\x01e",  # 5: experiment_id
            b"\x3a\x01t",  # 7: trial_id
            b"\x48\x03",  # 9: run
            b"\x89\x01" + struct.pack("<d", 30.0),  # 17: lease_ttl_seconds
            b"\x91\x01" + struct.pack("<d", 60.0),  # 18: preemption_timeout_seconds
            b"\xa2\x01\x05trace",  # 20: trace_id
            b"\xb2\x01\x01w",  # 22: workspace
            b"\xc1\x01" + struct.pack("<d", 5.0),  # 24: termination_grace_seconds
        )
    )
    spec = LaunchSpec.FromString(stored)
    assert (spec.experiment_id, spec.trial_id, spec.run, spec.trace_id) == ("e", "t", 3, "trace")
    assert not spec.HasField("lease_ttl")
    assert not spec.HasField("termination_grace")
