"""Triggers that refuse what would keep an old message of an experiment in use: a change without a revision.

Lists build the message of an experiment once for each of its versions, and watches send what has a new
revision. Databases of tests have these triggers, so that every test looks for a write that forgets it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine import Connection

_CHANGE = "NEW.revision = OLD.revision AND NEW.retention_owed = OLD.retention_owed"
"""That a policy is owed is nothing that anyone is shown."""
_TRIALS = "NEW.revision <> (SELECT revision FROM {schema}experiments WHERE id = NEW.experiment_id)"
_RULES = {
    ("experiments", "UPDATE"): (_CHANGE, "an experiment changed without a new revision"),
    ("trials", "INSERT"): (_TRIALS, "a trial was made without a new revision of its experiment"),
    ("trials", "UPDATE OF state"): (_TRIALS, "a trial changed without a new revision of its experiment"),
}


def require_revisions(connection: Connection) -> None:
    """Adds the triggers to a database of the experiments service."""
    statements = _postgresql() if connection.dialect.name == "postgresql" else _sqlite()
    for statement in statements:
        connection.exec_driver_sql(statement)


def _sqlite() -> Iterator[str]:
    for number, ((table, event), (condition, message)) in enumerate(_RULES.items()):
        when = condition.format(schema="")
        yield (
            f"CREATE TRIGGER revisions_{number} BEFORE {event} ON {table} WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )


def _postgresql() -> Iterator[str]:
    for number, ((table, event), (condition, message)) in enumerate(_RULES.items()):
        when = condition.format(schema="experiments.")
        yield (
            f"CREATE FUNCTION experiments.revisions_{number}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF {when} THEN RAISE EXCEPTION '{message}'; END IF; RETURN NEW; END $$"
        )
        yield (
            f"CREATE TRIGGER revisions_{number} BEFORE {event} ON experiments.{table} "
            f"FOR EACH ROW EXECUTE FUNCTION experiments.revisions_{number}()"
        )
