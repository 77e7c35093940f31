"""The cache that processes share where there is a Redis: counters of request limits, and nothing that cannot be lost."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

log = logging.getLogger(__name__)

AWAY_S = 5.0  # after a failure Redis is left alone for so long: waiting for it in every request would stop the portal

_clients: dict[str, Any] = {}
_away_until: dict[str, float] = {}


class JsonSerializer:
    """Values as JSON; numbers stay numbers, so that Redis can count."""

    def dumps(self, value: Any) -> Any:
        return value if type(value) is int else json.dumps(value)

    def loads(self, data: bytes) -> Any:
        return json.loads(data)


class SharedCache(RedisCache):
    """Django's Redis cache that falls back to the memory of this process while Redis is away.

    `clear()` removes its own keys only: the broker's messages live in the same Redis.
    """

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        options = params.setdefault("OPTIONS", {})
        options.setdefault("serializer", JsonSerializer())
        options.setdefault("socket_timeout", 0.5)
        options.setdefault("socket_connect_timeout", 0.5)
        super().__init__(server, params)
        self._url = server
        self._settings = options
        self._own = LocMemCache(f"while {server} is away", {})

    @property
    def _cache(self) -> Any:
        """One client, with its pool of connections, for the process: Django makes a cache object for every thread, so for every request."""
        if self._url not in _clients:
            _clients[self._url] = RedisCacheClient([self._url], **self._settings)
        return _clients[self._url]

    def _either(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() >= _away_until.get(self._url, 0.0):
            try:
                return getattr(super(), method)(*args, **kwargs)
            except (RedisConnectionError, RedisTimeoutError) as error:
                _away_until[self._url] = time.monotonic() + AWAY_S
                log.warning("Redis does not answer; limits are counted per process for now: %s", error)
        return getattr(self._own, method)(*args, **kwargs)

    def add(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("add", *args, **kwargs)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("get", *args, **kwargs)

    def set(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("set", *args, **kwargs)

    def touch(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("touch", *args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("delete", *args, **kwargs)

    def get_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("get_many", *args, **kwargs)

    def set_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("set_many", *args, **kwargs)

    def delete_many(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("delete_many", *args, **kwargs)

    def has_key(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("has_key", *args, **kwargs)

    def incr(self, *args: Any, **kwargs: Any) -> Any:
        return self._either("incr", *args, **kwargs)

    def clear(self) -> None:
        self._own.clear()
        try:
            client = self._cache.get_client(None, write=True)
            for key in client.scan_iter(match=f"{self.key_prefix}:*", count=1000):
                client.delete(key)
        except (RedisConnectionError, RedisTimeoutError) as error:
            log.warning("the cache could not be cleared: %s", error)
