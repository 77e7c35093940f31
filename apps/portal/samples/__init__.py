"""Sample documents, written for this portal: a small company that makes sensors, in Chinese and English.

They come in through the same door as any upload, so that a new space has something to search within seconds.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from django.core.files.base import ContentFile
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_list
from apps.knowledge.services import Arrival, base_create, document_upload

FILES = Path(__file__).parent / "files"
FAMILY = uuid.UUID("5d6c1f0a-6b1e-4c52-9a35-0a9b3c1d7e42")
TRIES = 50  # deleted sample bases keep their ids until they are cleaned up
#: Files stored in the encoding that spreadsheets of Chinese Windows write.
GB18030 = frozenset({"备件价格表.csv"})


def sample_uid(space_id: int, number: int) -> uuid.UUID:
    return uuid.uuid5(FAMILY, f"{space_id}/{number}")


def is_sample_base(base: KnowledgeBase) -> bool:
    return base.uid in {sample_uid(base.space_id, number) for number in range(TRIES)}


def load(*, actor: Actor, language: str = "") -> KnowledgeBase:
    """The base with the sample documents: the one that is there, else a new one. Twice changes nothing; files that are missing come back.

    Chinese readers get the Chinese documents and a few English ones, others the reverse mix: a search across languages needs both.
    """
    authorize(actor, "base.create")
    base = _existing(actor) or _create(actor)
    for path in _chosen(language):
        data = path.read_bytes()
        if path.name in GB18030:
            data = data.decode("utf-8").encode("gb18030")
        name = path.relative_to(FILES).as_posix().partition("/")[2].removeprefix("both/")
        document_upload(actor=actor, base=base, upload=ContentFile(data, name=path.name), file_name=name, arrival=Arrival(channel="web"))
    return base


def sample_text(language: str) -> str:
    """A text with headings, a list and a table, in the reader's language, to try settings on."""
    name = "zh/both/设备手册/TH01 温度传感器维护手册.md" if language.startswith("zh") else "en/both/Devices/HM02 humidity sensor manual.md"
    return (FILES / name).read_text(encoding="utf-8")


def _existing(actor: Actor) -> KnowledgeBase | None:
    return next((row.base for row in base_list(actor=actor) if is_sample_base(row.base)), None)


def _create(actor: Actor) -> KnowledgeBase:
    values = {
        "name": _("Samples: Northwind Sensors"),
        "description": _("Made-up documents of a small company, to try searching with. Delete it when you no longer need it."),
    }
    for number in range(TRIES):
        try:
            return base_create(actor=actor, values={**values, "id": str(sample_uid(actor.space, number))})
        except Conflict:
            continue
    return base_create(actor=actor, values=values)


def _chosen(language: str) -> list[Path]:
    """The first folder is all of the reader's language, of the other one what its folder `both` holds."""
    main, other = ("zh", "en") if language.startswith("zh") else ("en", "zh")
    files = [path for path in sorted(FILES.rglob("*")) if path.is_file()]
    return [path for path in files if path.is_relative_to(FILES / main)] + [
        path for path in files if path.is_relative_to(FILES / other / "both")
    ]
