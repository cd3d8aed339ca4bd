"""The largest sizes of call messages, for both ends."""

from __future__ import annotations

MAX_ANSWER_BYTES = 16 << 20
"""Most bytes of an answer: four times what gRPC takes by default, for what many machines or secrets take."""
