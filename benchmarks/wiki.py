"""How long a wiki of many pages takes to answer, and to come in and go out.

    python benchmarks/wiki.py [--pages 5000] [--requests 40]

Makes a portal of its own in a temporary folder, imports a generated vault (folders three deep, a summary, two names and eight links a page) as a
worker would, then asks what people and clients ask, each over HTTP through the whole stack but the socket.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WORDS = "水泵 轴承 机械密封 叶轮 泵房 检修 巡检 备件 阀门 电机 冷却水 压力 流量 振动 温度 润滑 维护 停机 启动 校准".split()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=40)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        os.environ |= {"KB_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "kbportal.settings.dev", "KB_LOG_LEVEL": "ERROR"}
        import django

        django.setup()
        print(json.dumps(measure(asked.pages, asked.requests), indent=2, ensure_ascii=False))
    return 0


def vault(pages: int, dice: random.Random) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(pages):
            folder = f"F{number % 12}/G{number % 60}/H{number % 180}"
            text = "\n\n".join(" ".join(dice.choices(WORDS, k=40)) for _paragraph in range(6))
            links = " ".join(f"[[p/{dice.randrange(pages)}|另见]]" for _link in range(8))
            kind = ("entity", "concept", "summary", "")[number % 4]
            front = f"title: 页面 {number} {dice.choice(WORDS)}\nslug: p/{number}\ntype: '{kind}'\naliases: [N{number}, 别名{number}]\n"
            archive.writestr(f"{folder}/p/{number}.md", f"---\n{front}folder: {folder}\nsummary: 摘要 {number}\n---\n\n{text}\n\n{links}\n")
    return target.getvalue()


def measure(pages: int, requests: int) -> dict[str, Any]:
    from django.core.management import call_command
    from django.test import Client
    from django.urls import reverse

    from apps.accounts.models import User
    from apps.common.actor import Actor, Role
    from apps.common.jobs.claims import claim_next
    from apps.common.jobs.registry import job_kinds
    from apps.common.jobs.tasks import work
    from apps.common.scope import space_scope, unscoped
    from apps.knowledge.services import base_create
    from apps.retrieval.engine import bare_engine
    from apps.spaces.models import Membership, Space
    from apps.wiki.models import WikiFolder, WikiPage
    from apps.wiki.selectors import wiki_export
    from apps.wiki.services import archive_read, wiki_import_start

    call_command("migrate", verbosity=0)
    bare_engine().ensure()
    dice = random.Random(7)
    user = User.objects.create_user("bench@example.com", "bench-pass-1", username="bench")
    space = Space.objects.create(name="Bench", kind=Space.Kind.ORGANIZATION)
    with unscoped("benchmark"):
        Membership.objects.create(space=space, user=user, role="admin")
    actor = Actor(kind="user", user_id=user.pk, space_id=space.pk, space_kind="organization", role=Role.ADMIN)
    found: dict[str, Any] = {"pages": pages}
    with space_scope(space.pk):
        strategy = {"wiki_enabled": True, "keyword_enabled": True}
        base = base_create(actor=actor, values={"name": "Wiki", "indexing_strategy": strategy})
        started = time.perf_counter()
        wiki_import_start(actor=actor, base=base, items=archive_read(io.BytesIO(vault(pages, dice))), file_name="vault.zip")
        claim = claim_next(job_kinds.get("wiki_import"))
        assert claim is not None
        work(claim)
        found["import_s"] = round(time.perf_counter() - started, 1)
        started = time.perf_counter()
        path = wiki_export(actor=actor, base=base)
        found["export_s"] = round(time.perf_counter() - started, 2)
        path.unlink()
        uids = list(WikiPage.objects.order_by("pk").values_list("uid", flat=True))
        folders = [str(uid) for uid in WikiFolder.objects.order_by("depth", "pk").values_list("uid", flat=True)]
        assert len(uids) == pages
    client = Client(headers={"X-Tenant-ID": str(space.pk)})
    client.force_login(user)
    rest, tab = f"/api/v1/knowledgebase/{base.uid}/wiki", reverse("base-wiki", args=[space.pk, base.uid])
    addresses: dict[str, Callable[[], str]] = {
        "tree level (REST, root)": lambda: f"{rest}/folders",
        "tree level (REST, a folder)": lambda: f"{rest}/folders?parent_id={dice.choice(folders)}",
        "tree level (page)": lambda: f"{tab}/level?folder={dice.choice(folders)}",
        "list (page)": lambda: f"{tab}?folder={dice.choice(folders)}",
        "list of all (page)": lambda: f"{tab}?page={dice.randrange(1, pages // 50 + 1)}",
        "page (REST)": lambda: f"{rest}/pages/p/{dice.randrange(pages)}",
        "page (page)": lambda: f"{tab}/pages/{dice.choice(uids)}",
        "search (REST)": lambda: f"{rest}/search?q={dice.choice(WORDS)}",
        "search for a name (REST)": lambda: f"{rest}/search?q=别名{dice.randrange(pages)}",
        "search (page)": lambda: f"{tab}?q=N{dice.randrange(pages)}",
        "figures (REST)": lambda: f"{rest}/stats",
        "index (REST)": lambda: f"{rest}/index?limit=50",
        "links and orphans (page)": lambda: f"{tab}/links",
    }
    for name, address in addresses.items():
        found[name] = timed(client, address, requests)
    return found


def timed(client: Any, address: Callable[[], str], requests: int) -> str:
    """Median and 95th percentile in milliseconds."""
    took = []
    for turn in range(requests + 3):
        url = address()
        started = time.perf_counter()
        answer = client.get(url)
        assert answer.status_code == 200, (url, answer.status_code)
        if turn >= 3:  # the first ones compile templates and fill caches
            took.append((time.perf_counter() - started) * 1000)
    took.sort()
    return f"p50 {took[len(took) // 2]:.0f} ms, p95 {took[int(len(took) * 0.95) - 1]:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
