"""The web process: `python -m apps.common.webserver FD` serves the portal on a socket that the supervisor listens on.

uvicorn's own `--fd` takes every socket for a Unix one and so leaves TCP_NODELAY off, which delays streamed answers.
"""

from __future__ import annotations

import socket
import sys

import uvicorn

GRACEFUL_SHUTDOWN_S = 5


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
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv)
