"""Models of documents are built at their first use, by one thread at a time, whatever release of pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from resolute.contracts.documents.section import Section

THREADS = 8


def test_threads_that_use_a_model_first_all_find_it_built() -> None:
    for _ in range(20):

        class Part(Section):
            size: int = 1

        class Whole(Section):
            part: Part
            parts: Mapping[str, Part]

        begin = Barrier(THREADS)

        def use(number: int, whole: type[Whole] = Whole, begin: Barrier = begin) -> Whole:
            begin.wait(60)
            return whole.model_validate({"part": {"size": number}, "parts": {"one": {"size": number}}})

        with ThreadPoolExecutor(THREADS) as pool:
            used = list(pool.map(use, range(THREADS)))
        assert [whole.part.size for whole in used] == list(range(THREADS))
