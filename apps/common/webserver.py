"""The web process: `python -m apps.common.webserver FD` serves the portal on a socket that the supervisor listens on.

uvicorn's own `--fd` takes every socket for a Unix one and so leaves TCP_NODELAY off, which delays streamed answers.
"""

from __future__ import annotations

import gc
import socket
import sys

import uvicorn

GRACEFUL_SHUTDOWN_S = 5


def settle(config: uvicorn.Config | None = None) -> None:
    """Load what every request needs, and take it out of the garbage collector's sight.

    Code, models and templates live as long as the process; looking through them again in every full collection cost a request some 90 ms
    of processor time, whichever happened to be running.
    """
    from django.urls import get_resolver

    if config is not None and not config.loaded:
        config.load()
    get_resolver().check()  # reads every pattern, and with them the views
    gc.collect()
    gc.freeze()


def main(argv: list[str]) -> None:
    """Serve until SIGTERM; open streams get GRACEFUL_SHUTDOWN_S seconds to end."""
    listener = socket.socket(fileno=int(argv[1]))
    config = uvicorn.Config(
        "kbportal.asgi:application",
        loop="auto",
        lifespan="off",
        log_config=None,  # Django's LOGGING holds for uvicorn's loggers as well
        access_log=False,  # the request middleware writes one line a request, with its id
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
    settle(config)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv)
