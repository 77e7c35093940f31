"""Doing several things at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection


def run_together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each callable answers, all started at once, each on a database connection of its own."""
    gate = threading.Barrier(len(jobs))
    results: list[Any] = [None] * len(jobs)

    def work(number: int) -> None:
        try:
            gate.wait(10)
            results[number] = jobs[number]()
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results
