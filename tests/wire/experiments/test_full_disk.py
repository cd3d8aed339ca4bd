"""A full disk is told of by the cluster, with what to do about it, until there is space again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.clusters.all_services import AllServices, all_services
from support.file_systems import fill_file_system, small_file_system

from resolute.api.experiments.v1 import cluster_service_pb2
from resolute.client.connection.home import LocalCluster
from resolute.errors import QuotaError
from resolute_embedded.status_report import read_status, show_status
from resolute_serving.context import Role
from resolute_serving.database.engine import Database


async def problems(service: AllServices) -> list[str]:
    answer = await service.cluster.GetCluster(cluster_service_pb2.GetClusterRequest())
    return list(answer.problems)


@pytest.mark.integration
def test_a_full_disk_is_named_with_its_remedy_while_it_is_full(tmp_path: Path) -> None:
    async def body() -> None:
        with small_file_system(tmp_path / "disk", "64m") as disk:
            async with all_services(disk) as service:
                assert await problems(service) == []
                filler = fill_file_system(disk)
                (problem,) = await problems(service)
                assert f"the disk of {disk}" in problem
                assert "is full" in problem
                assert "free some space there" in problem
                token = tmp_path / "token"
                token.write_text(service.running.user_token(role=Role.VIEWER))
                cluster = LocalCluster(
                    address=service.running.address, token_path=token, cluster_id="", pid=1
                )
                report = await asyncio.to_thread(read_status, cluster)
                assert f"problem: {problem}" in show_status(report)
                filler.unlink()
                assert await problems(service) == []
                await service.create(paused=True)

    asyncio.run(body())


def test_a_database_knows_whether_its_disk_was_full_at_the_last_write(tmp_path: Path) -> None:
    async def body() -> None:
        # A bound on the size of the file fails like a full disk.
        database = Database(f"sqlite:///{tmp_path}/small.sqlite", name="small", max_pages=8)
        table = sa.Table("t", sa.MetaData(), sa.Column("text", sa.String))
        await database.write(table.create)
        with pytest.raises(QuotaError, match="free some space"):
            await database.write(lambda c: c.execute(table.insert(), {"text": "x" * 100_000}))
        assert [database.disk_full] == [True]
        await database.write(lambda c: c.execute(table.insert(), {"text": "x"}))
        assert [database.disk_full] == [False]
        database.close()

    asyncio.run(body())
