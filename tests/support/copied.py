"""A full base in a running portal, and what a copy of it must have; called beside the portal: `python -m tests.support.copied ...`."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.rest import Rest, retrying
from tests.support.stack import LiveStack
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
PASSAGES = 3
SPACE = "measured:64"


def beside(stack: LiveStack, *argv: str) -> Any:
    """What one of this module's commands answers, run on the portal's data."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.copied", *argv], cwd=ROOT, env=stack.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def copy_under_fire(stack: LiveStack, rest: Rest, base: str, documents: int, kills: int) -> tuple[float, dict[str, int], dict[str, int]]:
    """Copy a base while its worker is killed; (seconds, figures of the source, of the copy)."""
    task = rest.data("POST", "/knowledge-bases/copy", {"source_id": base})["task_id"]
    progress = lambda: retrying(lambda: rest.data("GET", f"/knowledge-bases/copy/progress/{task}"))  # noqa: E731
    started = time.monotonic()
    for number in range(kills):
        mark = documents * (number + 1) // (kills + 1)
        until(lambda mark=mark: progress()["processed"] >= mark, f"{mark} documents", timeout_s=600, every_s=0.02)  # type: ignore[misc]
        assert progress()["status"] == "processing", "the copy was over before its worker was killed"
        stack.wait_replaced("worker", stack.kill("worker"))
    until(lambda: progress()["status"] in ("completed", "failed"), "the copy to end", timeout_s=1200)
    took = time.monotonic() - started
    ended = progress()
    assert (ended["status"], ended["error"], ended["processed"]) == ("completed", "", documents), ended
    return took, beside(stack, "figures", base), beside(stack, "figures", ended["target_id"])


def fill(uid: str, documents: int) -> dict[str, int]:
    """Documents with originals, passages, vectors and index rows, as if they had been read."""
    from django.core.files.base import ContentFile

    from apps.common import storage
    from apps.common.scope import space_scope, unscoped
    from apps.knowledge import files
    from apps.knowledge.models import Chunk, Document, KnowledgeBase, passage_hash
    from apps.retrieval.services import index_documents, meaning_hash, set_serving_space, store_vectors

    with unscoped("rows of a test"):
        base = KnowledgeBase.objects.get(uid=uid)
    numbers = np.random.default_rng(1)
    with space_scope(base.space_id):
        set_serving_space(base.pk, base.space_id, SPACE, "")
        made = []
        for n in range(documents):
            text = f"Device {n} has the code DEV-{n:06d}.\n"
            digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
            document = Document(
                space_id=base.space_id, kb=base, title=f"{n}.txt", file_name=f"{n}.txt", file_type="txt", file_hash=digest, enabled=True,
                parse_status="completed", file_size=len(text), chunk_count=PASSAGES, vector_count=PASSAGES, folder_path=f"f{n % 40}",
            )  # fmt: skip
            key = files.new_key(base.space_id, base.uid, document.uid)
            document.storage_path = storage.write(key, ContentFile(text.encode()))
            made.append(document)
        Document.objects.bulk_create(made, batch_size=500)
        for start in range(0, documents, 500):
            rows = []
            for document in made[start : start + 500]:
                for index in range(PASSAGES):
                    text = f"Part {index} of {document.title}."
                    rows.append(
                        Chunk(
                            space_id=base.space_id, kb=base, document=document, chunk_index=index, content=text,
                            content_hash=passage_hash(text), start_at=index * 10, end_at=index * 10 + 9,
                        )
                    )  # fmt: skip
            Chunk.objects.bulk_create(rows, batch_size=500)
            vectors = numbers.normal(size=(len(rows), 64)).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            store_vectors(base.space_id, SPACE, [meaning_hash(row.content) for row in rows], vectors)
            index_documents(base.space_id, [document.pk for document in made[start : start + 500]])
    return {"documents": documents}


def figures(uid: str) -> dict[str, int]:
    """What a copy and its source must have the same number of."""
    from apps.common.scope import unscoped
    from apps.knowledge import files
    from apps.knowledge.models import Chunk, Document, KnowledgeBase
    from apps.retrieval.engine import engine

    with unscoped("a look at a test's rows"):
        base = KnowledgeBase.objects.get(uid=uid)
        documents = list(Document.objects.filter(kb=base, deleted_at__isnull=True).values_list("pk", "vector_count"))
        held = engine().revisions(base.space_id)
        return {
            "documents": len(documents),
            "passages": Chunk.objects.filter(kb=base).count(),
            "vectors": sum(vectors for _pk, vectors in documents),
            "index rows": sum(1 for pk, _vectors in documents if pk in held),
            "originals": sum(1 for entry in files.stored_entries() if f"/{base.uid}/" in entry.key),
        }


if __name__ == "__main__":
    import django

    django.setup()
    command, *rest_of = sys.argv[1:]
    print(json.dumps(fill(rest_of[0], int(rest_of[1])) if command == "fill" else figures(rest_of[0])))
