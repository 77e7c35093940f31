"""Limits hold for all web processes together where there is a Redis, and a Redis that is away stops nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.common.api.throttle import WindowThrottle
from apps.common.cache import SharedCache
from tests.support.racing import run_together
from tests.support.redis import RedisProcess, free_port


class Ten(WindowThrottle):
    """Ten requests a minute for everybody together."""

    rate = "10/m"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return "throttle:everybody"


def process(url: str) -> SharedCache:
    """The cache of one web process: its own connections."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("apps.common.cache._clients", {})
        made = SharedCache(url, {"KEY_PREFIX": "test"})
        client = made._cache
    made.__class__ = type("OneProcess", (SharedCache,), {"_cache": client})
    return made


def let_in(cache: Any, at: float = 6000.0) -> bool:
    """Whether a request at this second gets in through this process."""
    throttle = Ten()
    throttle.cache, throttle.timer = cache, lambda: at  # type: ignore[method-assign,assignment]
    return throttle.allow_request(None, None)


def test_two_processes_count_together(redis_server: str) -> None:
    first, second = process(redis_server), process(redis_server)
    first.clear()
    assert [let_in(cache) for cache in (first, second) * 5] == [True] * 10
    assert (let_in(first), let_in(second)) == (False, False)


def test_racing_requests_get_no_more_than_the_limit(redis_server: str) -> None:
    process(redis_server).clear()
    answers = run_together([lambda: let_in(process(redis_server)) for _n in range(16)])
    assert answers.count(True) == 10


def test_the_window_slides(redis_server: str) -> None:
    cache = process(redis_server)
    cache.clear()
    assert [let_in(cache, 6059.0) for _n in range(11)] == [True] * 10 + [False]
    assert let_in(cache, 6061.0) is False, "a new minute has begun, the last ten seconds have not"
    assert [let_in(cache, 6090.0) for _n in range(6)] == [True] * 5 + [False], "half of it counts half"
    assert let_in(cache, 6300.0) is True


def test_who_is_refused_is_told_when_to_come_back(redis_server: str) -> None:
    cache = process(redis_server)
    cache.clear()
    throttle = Ten()
    throttle.cache, throttle.timer = cache, lambda: 6045.0  # type: ignore[method-assign,assignment]
    assert [throttle.allow_request(None, None) for _n in range(11)][-1] is False
    assert throttle.wait() == 15.0


def test_without_redis_each_process_counts_for_itself_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = process(f"redis://127.0.0.1:{free_port()}/0")
    assert [let_in(nobody) for _n in range(11)] == [True] * 10 + [False], "still a limit"
    with RedisProcess(tmp_path / "redis") as redis:
        first, second = process(redis.url), process(redis.url)
        assert let_in(first) is True
        redis.kill()
        assert let_in(first) is True and let_in(second) is True
        redis.start()
        monkeypatch.setattr("apps.common.cache._away_until", {})
        assert [let_in(cache) for cache in (first, second) * 6].count(True) == 10


def test_clearing_leaves_the_messages_of_the_broker_alone(redis_server: str) -> None:
    import redis

    client = redis.Redis.from_url(redis_server)
    client.set("parse", "a message")
    cache = process(redis_server)
    cache.set("x", {"a": [1.5]}, 60)
    assert (cache.get("x"), cache.get("y", 3)) == ({"a": [1.5]}, 3)
    cache.clear()
    assert (cache.get("x"), client.get("parse")) == (None, b"a message")
