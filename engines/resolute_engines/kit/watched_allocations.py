"""The watched allocations and their reported states. Each change and each end is reported once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from resolute_engines.protocol import ContainerReport, ContainerState


class WatchedAllocations:
    """The watched allocations of an engine whose containers are polled."""

    def __init__(self) -> None:
        self._reported: dict[str, dict[int, ContainerReport]] = {}
        self._sizes: dict[str, int] = {}

    def add(self, allocation_id: str, *, containers: int) -> None:
        """Watches an allocation of some containers from now on; one that is watched already goes on."""
        self._reported.setdefault(allocation_id, {})
        self._sizes[allocation_id] = containers

    def add_unless_ended(self, allocation_id: str, reports: Sequence[ContainerReport]) -> None:
        """Watches an allocation whose containers were found like that, if any of them waits or runs."""
        if any(report.waits or report.state is ContainerState.RUNNING for report in reports):
            self.add(allocation_id, containers=len(reports))

    def remove(self, allocation_id: str) -> None:
        """Watches an allocation no longer."""
        self._reported.pop(allocation_id, None)
        self._sizes.pop(allocation_id, None)

    def names(self) -> list[str]:
        """The allocations that are watched."""
        return list(self._reported)

    def changes(self, allocation_id: str, reports: Sequence[ContainerReport]) -> list[ContainerReport]:
        """Takes what was found of an allocation; it is watched until all of its containers have ended.

        Args:
            allocation_id: The allocation. It may have been removed since the engine was asked.
            reports: The state of every container; none where the engine knows nothing of it any more.

        Returns:
            The reports that are new. An end is new once: the engine may say more of a container that has
            ended, until the others have. A container that waited at an engine that forgot it has ended; one
            that had begun renews its lease as long as it lives, and is lost when it does not.
        """
        reported = self._reported.get(allocation_id)
        if reported is None:
            return []
        changed = [report for report in reports if _is_new(report, reported.get(report.container_rank))]
        if not reports:
            return self._forgotten(allocation_id, reported)
        reported |= {report.container_rank: report for report in reports}
        if all(report.state is ContainerState.ENDED for report in reports):
            self.remove(allocation_id)
        return changed

    def _forgotten(
        self, allocation_id: str, reported: Mapping[int, ContainerReport]
    ) -> list[ContainerReport]:
        ranks = range(self._sizes[allocation_id])
        self.remove(allocation_id)
        return [
            ContainerReport(
                allocation_id=allocation_id,
                container_rank=rank,
                state=ContainerState.ENDED,
                reason="its engine knows nothing of it any more",
            )
            for rank in ranks
            if rank not in reported or reported[rank].waits
        ]


def _is_new(report: ContainerReport, reported: ContainerReport | None) -> bool:
    return reported is None or (reported.state is not ContainerState.ENDED and reported != report)
