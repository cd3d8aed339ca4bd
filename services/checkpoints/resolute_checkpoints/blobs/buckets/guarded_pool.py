"""Connections to stores that are closed before anything is sent, if their address is not allowed."""

from __future__ import annotations

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from resolute.errors import PermissionDeniedError
from resolute_checkpoints.blobs.buckets.egress import require_reachable


def guard(pool: PoolManager) -> PoolManager:
    """Checks the address of every connection, after name resolution and redirects."""
    pool.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return pool


class _Connection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _require_peer(self)


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _require_peer(self)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _require_peer(connection: HTTPConnection) -> None:
    try:
        require_reachable(connection.sock.getpeername()[0])
    except PermissionDeniedError:
        connection.close()
        raise
