"""What other portals were reported for, once for each input that was named: the world of the contract's checklist, or a running portal."""

from tests.contract_checklist.conftest import words_only, world

__all__ = ["words_only", "world"]
