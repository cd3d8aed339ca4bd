"""Pages of lists that a database orders."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa
from contract.serving.databases import open_database
from sqlalchemy.engine import Connection
from support.calls.request_messages import message_type

from resolute.errors import InvalidArgumentError
from resolute_serving.pagination import MAX_PAGE_BYTES, Ordering, encode_token

Request = message_type("ListRowsRequest", kind=str, page_size=int, page_token=str, order_by=str)
TABLE = sa.Table(
    "rows",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("length", sa.Integer, nullable=False),
    sa.Column("metric", sa.Float),
)
ORDERING = Ordering(
    {"kind": TABLE.c.kind, "length": TABLE.c.length, "metric": TABLE.c.metric},
    unique=TABLE.c.id,
    default="length desc",
)
ROWS: list[dict[str, Any]] = [
    {"id": number, "kind": kind, "length": length, "metric": metric}
    for number, (kind, length, metric) in enumerate(
        product(("a", "b"), (1, 2), (None, 0.1, 0.1, float("inf"), -3.0)), start=1
    )
]


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with open_database(database_url, TABLE.metadata) as database, database.engine.begin() as connection:
        connection.execute(TABLE.insert(), ROWS)
        yield connection


def _read_all(connection: Connection, order_by: str, *, size: int) -> list[int]:
    request, found = Request(page_size=size, order_by=order_by), []
    while True:
        page = ORDERING.page(connection, request, sa.select(TABLE))
        assert len(page.rows) <= size
        found += [row["id"] for row in page.rows]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def _expected(order_by: str) -> list[int]:
    ids = [row["id"] for row in ROWS]
    parts = [part.split() for part in order_by.split(",")]
    ids.sort(reverse=parts[-1][1:] == ["desc"])
    by_id = {row["id"]: row for row in ROWS}
    for field, *rest in reversed(parts):
        present = [number for number in ids if by_id[number][field] is not None]
        absent = [number for number in ids if by_id[number][field] is None]
        present.sort(key=lambda number: by_id[number][field], reverse=rest == ["desc"])
        ids = present + absent
    return ids


@pytest.mark.parametrize(
    "order_by",
    ["length", "length desc", "kind, length desc", "kind desc, length desc", "metric", "metric desc, kind"],
)
def test_pages_put_together_are_the_whole_list_in_order(connection: Connection, order_by: str) -> None:
    for size in (1, 3, 100):
        assert _read_all(connection, order_by, size=size) == _expected(order_by)


def test_without_an_order_the_default_one_holds(connection: Connection) -> None:
    assert _read_all(connection, "", size=7) == _expected("length desc")


def test_rows_that_come_and_go_between_pages_neither_repeat_nor_hide_others(connection: Connection) -> None:
    request = Request(page_size=4, order_by="length")
    first = ORDERING.page(connection, request, sa.select(TABLE))
    seen = [row["id"] for row in first.rows]
    connection.execute(TABLE.delete().where(TABLE.c.id == seen[-1]))
    connection.execute(TABLE.insert(), {"id": 99, "kind": "a", "length": 0, "metric": None})
    request.page_token, request.page_size = first.next_page_token, 100
    rest = ORDERING.page(connection, request, sa.select(TABLE))
    assert seen + [row["id"] for row in rest.rows] == _expected("length")


def test_last_page_that_is_full_has_no_token(connection: Connection) -> None:
    assert ORDERING.page(connection, Request(page_size=len(ROWS)), sa.select(TABLE)).next_page_token == ""


def test_a_position_is_found_in_an_index(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        pytest.skip("PostgreSQL scans a table of this size")
    connection.execute(sa.text("CREATE INDEX rows_by_length ON rows (length, id)"))
    plans: list[str] = []

    def explain(_: object, __: object, statement: str, values: Any, *___: object) -> None:
        if statement.startswith("SELECT"):
            plan = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement}", values)
            plans.extend(row[3] for row in plan.fetchall())

    first = ORDERING.page(connection, Request(page_size=4), sa.select(TABLE))
    sa.event.listen(connection, "before_cursor_execute", explain)
    request = Request(page_size=4, page_token=first.next_page_token)
    ORDERING.page(connection, request, sa.select(TABLE))
    assert len(plans) == 1
    assert plans[0].startswith("SEARCH rows USING INDEX rows_by_length (length<?")


@pytest.mark.parametrize(
    ("order_by", "message"),
    [
        ("size", "order_by has 'size'.*the fields are kind, length, metric"),
        ("length up", "order_by has 'length up'"),
        ("length,", "order_by has ''"),
        ("length, length desc", "'length' twice"),
    ],
)
def test_orders_that_cannot_be_followed_are_refused(
    connection: Connection, order_by: str, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as refusal:
        ORDERING.page(connection, Request(order_by=order_by), sa.select(TABLE))
    assert [violation.field for violation in refusal.value.violations] == ["order_by"]


def test_token_of_another_order_or_filter_is_refused(connection: Connection) -> None:
    token = ORDERING.page(
        connection, Request(page_size=2, order_by="length"), sa.select(TABLE)
    ).next_page_token
    for request in (Request(order_by="kind"), Request(order_by="length", kind="a")):
        request.page_token = token
        with pytest.raises(InvalidArgumentError, match="other filters or another order"):
            ORDERING.page(connection, request, sa.select(TABLE))


@pytest.mark.parametrize("position", [1, [1], ["x", 1], [1, None], [True, []], [2**63, 1], {}])
def test_made_up_position_is_refused(connection: Connection, position: object) -> None:
    request = Request(order_by="length")
    request.page_token = encode_token(request, position)
    with pytest.raises(InvalidArgumentError, match="begin with the first page"):
        ORDERING.page(connection, request, sa.select(TABLE))


def test_a_page_of_large_rows_ends_before_its_limit_but_holds_one_at_least(connection: Connection) -> None:
    half = TABLE.c.length * (MAX_PAGE_BYTES // 2)  # Rows of a half and of a whole page.
    ordering = Ordering(
        {"length": TABLE.c.length}, unique=TABLE.c.id, default="length", max_page_size=3, row_bytes=half
    )
    request, sizes = Request(page_size=100), []
    while True:
        page = ordering.page(connection, request, sa.select(TABLE.c.id))
        sizes.append(len(page.rows))
        request.page_token = page.next_page_token
        if not request.page_token:
            break
    assert sizes == [2] * 5 + [1] * 10


def test_a_list_may_have_a_smaller_limit(connection: Connection) -> None:
    ordering = Ordering({"length": TABLE.c.length}, unique=TABLE.c.id, default="length", max_page_size=3)
    assert len(ordering.page(connection, Request(page_size=100), sa.select(TABLE.c.id)).rows) == 3
