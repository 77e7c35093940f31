"""What an API key may be given (contract platform 1.7), with the words the key page shows."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

#: name -> what it allows
KNOWN: dict[str, Any] = {
    "retrieve": _("Read and search knowledge bases, documents and passages"),
    "ingest": _("Add, change and delete documents, passages, tags and folders"),
    "manage_kbs": _("Create, change, copy and delete knowledge bases"),
    "manage_members": _("Add and remove members, and invite people"),
    "manage_tenant_settings": _("Read the space and its settings"),
    "chat": _("Ask questions and hold conversations"),
    "read_agents": _("See agents"),
    "manage_agents": _("Create and change agents"),
    "message_history": _("Search past messages"),
    "manage_models": _("Manage models"),
    "manage_mcp_services": _("Manage tool services"),
    "manage_datasources": _("Manage data sources"),
    "manage_channels": _("Manage channels"),
    "manage_vector_stores": _("Manage vector stores"),
    "manage_storage_backends": _("Manage file stores"),
    "manage_web_search": _("Manage web search"),
    "run_evaluations": _("Run evaluations"),
    "manage_spaces": _("Manage shared spaces"),
}

#: those that open something in this portal today; the page offers these, the API accepts all the contract names
OFFERED = ("retrieve", "ingest", "manage_kbs", "manage_models", "manage_datasources", "manage_members", "manage_tenant_settings")
