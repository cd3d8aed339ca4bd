"""Random numbers of a search: numpy's legacy generator as a stream whose position is its whole state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

_BLOCK = 256
_WORD = 1 << 32
_MAX_SEED = _WORD - 1


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The position of a stream, from which the stream can be rebuilt.

    Attributes:
        seed: The seed that the stream started from.
        draws: Number of 32-bit words that were drawn since.
    """

    seed: int
    draws: int

    def to_json(self) -> dict[str, int]:
        """Returns the position as a JSON object."""
        return {"seed": self.seed, "draws": self.draws}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> StreamPosition:
        """Reads what `to_json` wrote."""
        return cls(seed=int(state["seed"]), draws=int(state["draws"]))


class RandomStream:
    """The random numbers of ``numpy.random.RandomState(seed)``, bit for bit.

    It draws 32-bit words and counts them, instead of using numpy's integers and floats. So its state is two
    integers instead of 624 words, and fits into the log entry of an event.

    Args:
        seed: Seed from 0 to 2**32 - 1.
        draws: Number of words to skip: `draws` of an earlier stream with this seed.

    Raises:
        ValueError: The seed is out of range, or draws is negative.
    """

    def __init__(self, seed: int, draws: int = 0) -> None:
        if not 0 <= seed <= _MAX_SEED:
            raise ValueError(f"random seed {seed} is outside of 0 to {_MAX_SEED}")
        if draws < 0:
            raise ValueError(f"cannot skip {draws} random words")
        # RandomState has the legacy seeding; its state moves into a bare generator, which gives the raw
        # words.
        self._words = np.random.MT19937()
        self._words.state = cast("Any", np.random.RandomState(seed).get_state(legacy=False))
        if draws:
            self._words.random_raw(draws, output=False)
        self._seed = seed
        self._fetched = draws
        self._buffer: list[int] = []

    @property
    def position(self) -> StreamPosition:
        """The position of the stream."""
        return StreamPosition(seed=self._seed, draws=self._fetched - len(self._buffer))

    def advance_to(self, draws: int) -> None:
        """Skips words.

        Args:
            draws: The `draws` of the position to go to, not before the stream's own.

        Raises:
            ValueError: The position lies behind.
        """
        ahead = draws - (self._fetched - len(self._buffer))
        if ahead < 0:
            raise ValueError(f"the random stream cannot go back by {-ahead} words")
        buffered = min(ahead, len(self._buffer))
        if buffered:
            del self._buffer[-buffered:]
        if ahead > buffered:
            self._words.random_raw(ahead - buffered, output=False)
            self._fetched += ahead - buffered

    def word(self) -> int:
        """Draws 32 random bits."""
        if not self._buffer:
            self._buffer = self._words.random_raw(_BLOCK).tolist()
            self._buffer.reverse()  # taken from the end, which is cheap
            self._fetched += _BLOCK
        return self._buffer.pop()

    def bounded(self, bound: int) -> int:
        """Draws a whole number from 0 to bound - 1; equals ``RandomState.randint(0, bound)``.

        Args:
            bound: From 1 to 2**64. A bound of 1 takes no words.

        Raises:
            ValueError: The bound is out of range.
        """
        if not 1 <= bound <= _WORD * _WORD:
            raise ValueError(f"cannot draw a whole number below {bound}")
        largest = bound - 1
        if largest == 0:
            return 0
        mask = (1 << largest.bit_length()) - 1
        wide = largest >= _WORD
        while True:
            word = self.word()
            if wide:
                word = word << 32 | self.word()
            word &= mask
            if word <= largest:
                return word

    def unit(self) -> float:
        """Draws a real number in [0, 1) with 53 random bits; equals ``RandomState.random_sample()``."""
        high = self.word() >> 5
        low = self.word() >> 6
        return (high * 67108864.0 + low) / 9007199254740992.0

    def octets(self, words: int) -> bytes:
        """Draws words of random bits as little-endian bytes; equals ``RandomState.bytes(4 * words)``."""
        return b"".join(self.word().to_bytes(4, "little") for _ in range(words))
