"""The connectors, one module per kind of source. Importing this package registers them and loads no heavy library."""

from __future__ import annotations

from apps.sources.plugins.connectors import (  # noqa: F401 - importing registers
    confluence,
    feishu,
    git,
    gitlab,
    local_folder,
    notion,
    rss,
    s3,
    web_crawler,
    webdav,
    yuque,
)
