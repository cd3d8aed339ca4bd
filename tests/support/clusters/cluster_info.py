"""What a trial knows of its cluster, made up."""

from __future__ import annotations

from resolute.info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo


def cluster_of(*addresses: str, rank: int = 0) -> ClusterInfo:
    """What the container of a rank is told, each container with one slot."""
    return ClusterInfo(
        master_url="http://127.0.0.1:1",
        cluster_id="cluster",
        agent_id=f"agent{rank}",
        slot_ids=[0],
        task_id="trial-1",
        allocation_id="allocation",
        session_token="",
        task_type="TRIAL",
        trial_info=TrialInfo(1, 1, 0, {}, {}, 0, 1),
        rendezvous_info=RendezvousInfo(addresses, rank, [1] * len(addresses)),
        resources_info=ResourcesInfo([]),
    )
