"""The connectors, one module per kind of source. Importing this package registers them and loads no heavy library."""

from __future__ import annotations

from apps.sources.plugins.connectors import git, local_folder, rss, s3, web_crawler, webdav  # noqa: F401 - importing registers
