"""Keeps gRPC from logging the actions of its clients. Services import this before anything imports gRPC.

For each frame that the core of gRPC cannot use, it writes a line to stderr with up to 16 KiB of the frame's
content, control characters included; so any client that reaches a port could write into the log. If a client
disconnects while its call is answered, gRPC logs a traceback. The services log calls themselves.
"""

import logging
import os

_CLIENT_IS_GONE = "ExecuteBatchError raised in core"


def _is_of_a_defect(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_CLIENT_IS_GONE)


os.environ.setdefault("GRPC_VERBOSITY", "NONE")
logging.getLogger("grpc._cython.cygrpc").addFilter(_is_of_a_defect)
