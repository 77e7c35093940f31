"""kill -9 of the worker in the middle of a copy of a base: it goes on, and source and copy agree in every figure."""

from __future__ import annotations

import pytest

from tests.support.copied import PASSAGES, beside, copy_under_fire
from tests.support.rest import Rest
from tests.support.stack import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

DOCUMENTS = 900


def test_a_copy_survives_the_kill_of_its_worker(shared_stack: LiveStack) -> None:
    rest = Rest(shared_stack.base_url).sign_up()
    base = rest.make_base()
    beside(shared_stack, "fill", base, str(DOCUMENTS))
    _took, source, copy = copy_under_fire(shared_stack, rest, base, DOCUMENTS, kills=2)
    assert source == copy
    assert (copy["documents"], copy["passages"], copy["index rows"]) == (DOCUMENTS, DOCUMENTS * PASSAGES, DOCUMENTS)
    checked = shared_stack.manage("reconcile", "--check", "--young", "0")
    assert "database, index and files agree" in checked.stdout
