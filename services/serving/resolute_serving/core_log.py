"""Keeps gRPC from logging what its clients do. Programs of services import this before anything imports gRPC.

Whoever reaches a port makes the core write a line to stderr for each frame that it cannot use, with up to
16 KiB of what the frame has in it, control characters included. And where a client goes away at the moment in
which its call is answered, gRPC logs a traceback. The services log calls themselves.
"""

import logging
import os

_CLIENT_IS_GONE = "ExecuteBatchError raised in core"


def _is_of_a_defect(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_CLIENT_IS_GONE)


os.environ.setdefault("GRPC_VERBOSITY", "NONE")
logging.getLogger("grpc._cython.cygrpc").addFilter(_is_of_a_defect)
