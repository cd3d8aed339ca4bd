"""The metadata object of all tables of the service."""

from __future__ import annotations

import sqlalchemy as sa

from resolute_serving.idempotency import IdempotencyKeys

metadata = sa.MetaData()
IDEMPOTENCY_KEYS = IdempotencyKeys(metadata)
"""Request ids of calls that create something here."""
