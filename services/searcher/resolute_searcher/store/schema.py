"""The tables of the searcher service: a log for each search, and indexes."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

searches = sa.Table(
    "searches",
    metadata,
    sa.Column("search_id", sa.String(36), primary_key=True),
    # The spec as it was asked for; empty in tombstones.
    sa.Column("spec", sa.LargeBinary, nullable=False),
    sa.Column("method_version", sa.Text, nullable=False),
    sa.Column("last_sequence", sa.BigInteger, nullable=False),
    # The tip of the last entry. An append names the tip that it was decided upon and succeeds only if that is
    # still the last one: this makes writers beside each other safe, and decisions upon an entry that was
    # never written.
    sa.Column("tip", sa.String(32), nullable=False),
    sa.Column("last_action", sa.BigInteger, nullable=False),
    sa.Column("acknowledged", sa.BigInteger, nullable=False),
    sa.Column("over", sa.Boolean, nullable=False),
    sa.Column("requested", sa.BigInteger, nullable=False),
    sa.Column("closed", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    # Set in tombstones.
    sa.Column("deleted_at", sa.Float),
)

entries = sa.Table(
    "entries",
    metadata,
    sa.Column("search_id", sa.String(36), primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True),
    # Identifies the event across retries; empty for events that the search itself recognizes.
    sa.Column("event_id", sa.Text, nullable=False),
    # Name and version of the method that decided.
    sa.Column("method_version", sa.Text, nullable=False),
    # A LoggedEvent.
    sa.Column("entry", sa.LargeBinary, nullable=False),
    sa.Column("last_action", sa.BigInteger, nullable=False),
    sa.Column("has_actions", sa.Boolean, nullable=False),
    sa.Column("draws", sa.BigInteger, nullable=False),
    # A random name of this entry and, by that, of all that came before it.
    sa.Column("tip", sa.String(32), nullable=False),
)
# Followers ask for entries beyond an action; most entries cause none.
# As text, which both databases take: an Index with a condition would load the dialects of both.
for _index in (
    "CREATE UNIQUE INDEX entries_by_event_id ON entries (search_id, event_id) WHERE event_id != ''",
    "CREATE INDEX entries_by_action ON entries (search_id, last_action) WHERE has_actions",
):
    sa.event.listen(entries, "after_create", sa.DDL(_index))  # type: ignore[no-untyped-call]

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("trial_id", sa.String(36), primary_key=True),
    sa.Column("search_id", sa.String(36), nullable=False),
    sa.Column("trial_key", sa.String(36), nullable=False),
    # How far the trial says it is.
    sa.Column("progress", sa.Float, nullable=False),
)
sa.Index("trials_by_search", trials.c.search_id)

# A cache: whatever of it does not fit the log or the code that reads it is passed over.
snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("search_id", sa.String(36), primary_key=True),
    # The last entry that the state is of, and its tip.
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("tip", sa.String(32), nullable=False),
    # The fingerprint of the code that wrote it.
    sa.Column("code", sa.Text, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=False),
)
