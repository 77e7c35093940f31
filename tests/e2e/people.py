"""Somebody signed in at a running portal, in a browser and over REST."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.rest import PASSWORD, Rest
from tests.support.stack import LiveStack

CHROMIUM = "/usr/bin/chromium"


@dataclass
class Person:
    """`home` is the address of their space; `faults` what the browser complained about so far."""

    rest: Rest
    page: Any
    home: str
    faults: list[str] = field(default_factory=list)

    def base(self, name: str, *, words_only: bool = False, **values: Any) -> str:
        """The id of a new base; `words_only` has no vectors to wait for."""
        if words_only:
            values["indexing_strategy"] = {"keyword_enabled": True, "vector_enabled": False}
        return str(self.rest.call("POST", "/knowledge-bases", {"name": name, **values}).body["data"]["id"])

    def open(self, tail: str) -> Any:
        """The page at an address below the space, ready to be used."""
        self.page.goto(f"{self.home}{tail}")
        self.page.wait_for_selector("html[data-ready]", state="attached")
        return self.page


@contextmanager
def signed_in(stack: LiveStack, name: str, **context: Any) -> Iterator[Person]:
    """A new person of this name with a browser window of their own."""
    from playwright.sync_api import sync_playwright

    rest = Rest(stack.base_url).sign_up(name)
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(**{"locale": "en-GB", "viewport": {"width": 1360, "height": 900}, **context}).new_page()
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" and "status of 422" not in said.text else None)
        page.goto(f"{stack.base_url}/account/login/")
        page.locator("[name=login]").fill(f"{name}@example.com")
        page.locator("[name=password]").fill(PASSWORD)
        page.locator("[name=password]").press("Enter")
        page.wait_for_url(re.compile(r"/s/\d+/$"))
        yield Person(rest, page, str(page.url), faults)
        browser.close()
