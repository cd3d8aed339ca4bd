"""Media over both databases: exactly once, by digest, under limits, and gone with their experiment."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from support.services.checkpoints import EXPERIMENT, TRIAL, VISION, RegistryHarness, registry_harness

from resolute.api.checkpoints.v1 import media_pb2
from resolute.api.checkpoints.v1 import media_service_pb2 as api
from resolute.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from resolute_checkpoints.domain.checkpoint import DirectoryStorage
from resolute_checkpoints.media import queries
from resolute_checkpoints.media.intake import Intake, Outcome, known_contents
from resolute_checkpoints.media.limits import MediaLimits
from resolute_checkpoints.media.parsing import parse_batch
from resolute_checkpoints.media.values import ROW_BYTES
from resolute_checkpoints.store import usage
from resolute_checkpoints.store.files import inheritance
from resolute_checkpoints.store.schema import media
from resolute_serving.ingestion.byte_limits import ByteLimits

PNG = b"\x89PNG\r\n\x1a\n"
OTHER_TRIAL = str(uuid.UUID(int=201))
IMAGE, TEXT = media_pb2.MEDIA_KIND_IMAGE, media_pb2.MEDIA_KIND_TEXT
Logged = api.IngestMediaRequest.LoggedMedia


def image(name: str = "samples", *, steps: int = 1, content: bytes = b"a", size: int = 5000) -> Logged:
    return Logged(name=name, kind=IMAGE, steps_completed=steps, content=(PNG + content).ljust(size, b"."))


def text(content: str, *, steps: int = 1, name: str = "said") -> Logged:
    return Logged(name=name, kind=TEXT, steps_completed=steps, content=content.encode())


async def ingest(
    w: RegistryHarness,
    media: Sequence[Logged],
    *,
    first: int = 0,
    trial: str = TRIAL,
    run: int = 1,
    source: str = "rank0",
    count: int | None = None,
    limits: MediaLimits | None = None,
) -> Outcome:
    storage = DirectoryStorage(str(w.root))
    request = api.IngestMediaRequest(
        trial_id=trial,
        experiment_id=EXPERIMENT,
        run=run,
        source=source,
        first_sequence=first,
        count=len(media) if count is None else count,
        media=media,
    )
    batch = parse_batch(request, storage=storage)
    intake = Intake(w.database, w.contents, limits=limits or MediaLimits(), clock=w.clock)
    return await intake.ingest(batch, workspace=VISION, listed=False)


async def listed(w: RegistryHarness, trial: str = TRIAL, **wanted: object) -> list[media_pb2.Media]:
    request = api.ListMediaRequest(trial_id=trial, page_size=1000, **wanted)  # type: ignore[arg-type]
    found, _ = await w.database.read(lambda link: queries.list_media(link, trial, request))
    return found


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "cluster" / "media").rglob("*") if path.is_file())


def test_a_batch_is_stored_once_however_often_it_comes(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            batch = [image(), text("hello"), image(steps=2, content=b"b")]
            assert (await ingest(w, batch)).next_sequence == 3
            assert (await ingest(w, batch)).next_sequence == 3
            assert (await ingest(w, batch[2:], first=2)).next_sequence == 3
            with pytest.raises(FailedPreconditionError, match="3 was expected"):
                await ingest(w, batch, first=7)
            found = await listed(w)
            assert [(one.name, one.steps_completed, one.kind) for one in found] == [
                ("samples", 1, IMAGE),
                ("said", 1, TEXT),
                ("samples", 2, IMAGE),
            ]
            assert [one.content_type for one in found] == ["image/png", "text/plain", "image/png"]
            # Small contents come with the list, large ones are files by their digest.
            assert [one.content for one in found] == [b"", b"hello", b""]
            digests = sorted(hashlib.sha256(batch[place].content).hexdigest() for place in (0, 2))
            assert files(root) == digests

    asyncio.run(scenario())


def test_a_content_is_read_as_it_was_logged_and_damage_is_found(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [image()])
            (one,) = await listed(w)
            found, experiment, storage = await w.database.read(
                lambda link: queries.find(link, TRIAL, one.media_id)
            )
            assert storage is not None
            content = await w.contents.read(storage, experiment, found.digest, size=found.size)
            assert content == image().content
            with pytest.raises(NotFoundError, match="has logged no media"):
                await w.database.read(lambda link: queries.find(link, OTHER_TRIAL, one.media_id))
            (root / "cluster" / "media" / EXPERIMENT / found.digest).write_bytes(b"<svg onload=alert(1)>")
            with pytest.raises(DataLossError, match="not what was logged"):
                await w.contents.read(storage, experiment, found.digest, size=found.size)

    asyncio.run(scenario())


def test_the_same_content_is_stored_and_counted_once_in_an_experiment(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [image(size=6000), image(size=6000, steps=2)])
            await ingest(w, [image(size=6000)], trial=OTHER_TRIAL)
            assert len(files(root)) == 1
            used = await w.storage_usage(VISION)
            assert 6000 < used < 2 * 6000
            [row] = await w.database.read(lambda connection: usage.of_experiments(connection, VISION))
            assert (row.checkpoint_count, row.checkpoint_bytes, row.media_bytes) == (0, 0, used)
            for trial in (TRIAL, OTHER_TRIAL):
                for one in await listed(w, trial):
                    find = partial(queries.find, trial_id=trial, media_id=one.media_id)
                    _, _, storage = await w.database.read(find)
                    assert storage is not None

    asyncio.run(scenario())


def test_a_content_that_came_at_many_steps_is_looked_for_as_fast_as_one_that_came_once(
    url: str, root: Path
) -> None:
    """A plot that never changes is logged at each step of each trial."""
    if not url.startswith("sqlite"):
        pytest.skip("SQLite alone counts its steps")
    many, one = [image(steps=step) for step in range(300)], image(content=b"b")

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [*many, one])

            def steps_of(logged: Logged) -> Callable[[Connection], int]:
                digest = hashlib.sha256(logged.content).hexdigest()

                def look(connection: Connection) -> int:
                    [key] = connection.execute(sa.select(media.c.experiment_key).distinct()).scalars()
                    counted: list[None] = []
                    driver = connection.connection.driver_connection
                    assert driver is not None
                    driver.set_progress_handler(lambda: counted.append(None), 1)
                    assert known_contents(connection, key, [digest]).keys() == {digest}
                    driver.set_progress_handler(None, 0)
                    return len(counted)

                return look

            assert await w.database.read(steps_of(many[0])) == await w.database.read(steps_of(one))

    asyncio.run(scenario())


def test_more_contents_are_known_than_one_statement_asks_for(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            several = [image(steps=step, content=b"%d" % step) for step in range(120)]
            await ingest(w, several)
            again = await ingest(w, several, trial=OTHER_TRIAL)
            assert again.usage.bytes == 120 * ROW_BYTES

    asyncio.run(scenario())


def test_what_is_beyond_a_limit_is_dropped_counted_and_said(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            limits = MediaLimits(step_count=2)
            outcome = await ingest(w, [text(str(number)) for number in range(5)], limits=limits)
            assert (outcome.next_sequence, outcome.usage.dropped) == (5, 3)
            outcome = await ingest(w, [text("next", steps=2)], first=5, limits=limits)
            assert outcome.usage.dropped == 3
            few = MediaLimits(bytes=ByteLimits(prefix="RESOLUTE_MEDIA", trial=3000))
            outcome = await ingest(w, [image(steps=3)], first=6, limits=few)
            assert outcome.usage.dropped == 4
            assert files(root) == []
            (dropped,) = await w.database.read(lambda link: queries.list_dropped(link, [TRIAL]))
            assert (dropped.count, dropped.bytes) == (4, 3 + 5000)
            assert dropped.explanation == (
                "4 media of this trial (4.9 KiB) were dropped so far: "
                "the trial has reached 2.9 KiB (RESOLUTE_MEDIA_TRIAL_BYTES)"
            )
            many = replace(limits, step_count=100, trial_count=3)
            assert (await ingest(w, [text("full", steps=4)], first=7, limits=many)).usage.dropped == 5
            assert [one.content for one in await listed(w)] == [b"0", b"1", b"next"]

    asyncio.run(scenario())


def test_what_is_of_no_known_format_is_refused_by_itself(url: str, root: Path) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            wrong = [
                Logged(name="svg", kind=IMAGE, content=svg),
                Logged(name="page", kind=IMAGE, content=b"<!doctype html><script>alert(1)</script>"),
                Logged(name="figure", kind=media_pb2.MEDIA_KIND_FIGURE, content=svg),
                Logged(
                    name="table",
                    kind=media_pb2.MEDIA_KIND_TABLE,
                    content=b'{"columns": ["a"], "rows": [[{}]]}',
                ),
                Logged(
                    name="bins", kind=media_pb2.MEDIA_KIND_HISTOGRAM, content=b'{"counts": [1], "edges": [1]}'
                ),
                Logged(name="deep", kind=media_pb2.MEDIA_KIND_TABLE, content=b"[" * 100_000),
                Logged(name="sound", kind=media_pb2.MEDIA_KIND_AUDIO, content=PNG),
                Logged(name="said", kind=TEXT, content=b"\xff"),
                Logged(name="", kind=TEXT, content=b"x"),
                Logged(name="none", content=b"x"),
                Logged(name="said", kind=TEXT, caption="a\0", content=b"x"),
                Logged(name="large", kind=TEXT, content=b"x" * 2_000_001),
            ]
            outcome = await ingest(w, [*wrong, text("kept")])
            assert outcome.next_sequence == len(wrong) + 1
            assert [refusal.sequence for refusal in outcome.refusals] == list(range(len(wrong)))
            assert (
                "none of the formats PNG, JPEG, GIF and WebP; convert it first" in outcome.refusals[0].message
            )
            assert "its caption has a NUL character" in outcome.refusals[-2].message
            assert [one.name for one in await listed(w)] == ["said"]
            # A sender may also leave out what a message cannot hold.
            assert (await ingest(w, [], first=len(wrong) + 1, count=1)).next_sequence == len(wrong) + 2

    asyncio.run(scenario())


def test_lists_are_by_steps_name_and_kind_in_pages(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [text("late", steps=9), text("early"), image(steps=3)])
            await ingest(w, [text("again", steps=1)], run=2, source="rank0-2")
            assert [one.steps_completed for one in await listed(w)] == [1, 1, 3, 9]
            assert [(one.run, one.content) for one in await listed(w, name="said")] == [
                (1, b"early"),
                (2, b"again"),
                (1, b"late"),
            ]
            assert [one.name for one in await listed(w, kind=IMAGE)] == ["samples"]
            request = api.ListMediaRequest(trial_id=TRIAL, page_size=3)
            page, token = await w.database.read(lambda link: queries.list_media(link, TRIAL, request))
            request.page_token = token
            rest, end = await w.database.read(lambda link: queries.list_media(link, TRIAL, request))
            assert (len(page), len(rest), end) == (3, 1, "")
            names = await w.database.read(lambda link: queries.list_names(link, [TRIAL, OTHER_TRIAL]))
            assert [(one.name, one.count, one.min_steps, one.max_steps) for one in names] == [
                ("said", 3, 1, 9),
                ("samples", 1, 3, 3),
            ]

    asyncio.run(scenario())


def test_everything_goes_with_the_experiment_also_what_comes_later(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [image(), text("x")])
            await ingest(w, [image(content=b"b")], trial=OTHER_TRIAL)
            assert len(files(root)) == 2
            await w.deletions.delete_experiment(EXPERIMENT)
            assert files(root) == []
            assert await w.storage_usage(VISION) == 0
            assert (await ingest(w, [image(content=b"late")], first=2)).next_sequence == 3
            assert files(root) == []
            assert await listed(w) == []
            await w.deletions.delete_experiment(EXPERIMENT)

    asyncio.run(scenario())


def test_a_store_that_is_away_keeps_the_deletion_open(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [image()])
            away = root.with_name("away")
            root.rename(away)
            with pytest.raises(UnavailableError, match="mount it"):
                await w.deletions.delete_experiment(EXPERIMENT)
            away.rename(root)
            await w.deletions.delete_experiment(EXPERIMENT)
            assert files(root) == []

    asyncio.run(scenario())


def test_media_of_the_original_of_a_copied_cluster_stay_until_they_are_taken_over(
    url: str, root: Path
) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await ingest(w, [image()])
            await w.database.write(inheritance.inherit_all)
            with pytest.raises(FailedPreconditionError, match="resolute take-over"):
                await w.deletions.delete_experiment(EXPERIMENT)
            assert len(files(root)) == 1
            await w.database.write(inheritance.take_over)
            await w.deletions.delete_experiment(EXPERIMENT)
            assert files(root) == []

    asyncio.run(scenario())


def test_a_store_that_cannot_be_written_holds_nothing_up_for_long(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            (root / "cluster").write_text("a file where the directory would be")
            with pytest.raises(FailedPreconditionError, match="media cannot be stored now"):
                await ingest(w, [image()])
            (root / "cluster").unlink()
            assert (await ingest(w, [image()])).next_sequence == 1

    asyncio.run(scenario())


def test_without_a_storage_small_media_are_kept_and_large_ones_refused(url: str, root: Path) -> None:
    def request(first: int, *media: Logged) -> api.IngestMediaRequest:
        return api.IngestMediaRequest(
            trial_id=TRIAL,
            experiment_id=EXPERIMENT,
            run=1,
            source="s",
            first_sequence=first,
            count=len(media),
            media=media,
        )

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            intake = Intake(w.database, w.contents, limits=MediaLimits(), clock=w.clock)
            small = parse_batch(request(0, text("x")), storage=None)
            assert (await intake.ingest(small, workspace=VISION, listed=False)).next_sequence == 1
            large = parse_batch(request(1, image()), storage=None)
            with pytest.raises(InvalidArgumentError, match="name where the experiment's checkpoints are"):
                await intake.ingest(large, workspace=VISION, listed=False)
            assert [one.name for one in await listed(w)] == ["said"]

    asyncio.run(scenario())
