"""Why a document is not where it should be, in words: what happened, why, and what to do next.

The codes are the closed list that parsers, the pipeline and the sweeper write into `Document.reason` and `Document.warnings`.
A code that is not listed is shown as `internal`, never raw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _

from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.rules.documents import is_pdf, opened_with_password
from apps.llm.failures import FAILURES, failure_of

#: What a button beside the words does: read it again; as another encoding; with a password; bring a better file; look at the settings.
Step = Literal["", "reparse", "encoding", "upload", "settings", "password"]


@dataclass(frozen=True, slots=True)
class Reason:
    """`word`: two or three words for a row; `title`: what happened; `why` and `next`: sentences; `kept`: what is safe.

    `tone` is "danger" when the portal or the file is broken, "warning" when the person can simply supply what is missing.
    """

    word: Any
    title: Any
    why: Any
    next: Any
    step: Step = ""
    tone: Literal["danger", "warning", ""] = "warning"
    kept: Any = _("The original is kept.")


REASONS: dict[str, Reason] = {
    "empty": Reason(
        _("No text"),
        _("There is no text in this document"),
        _("It was opened without trouble, but it holds no words that could be found."),
        _("Check that the right file was saved, then upload it again."),
        "upload",
    ),
    "needs_ocr": Reason(
        _("Needs OCR"),
        _("The pages are pictures"),
        _("There is no text layer, as with scans and photographs, and reading pictures (OCR) is switched off here."),
        _("Ask the administrator to switch OCR on, or upload a version with text. Then parse it again."),
        "reparse",
    ),
    "unreadable_text": Reason(
        _("Unreadable text"),
        _("The text comes out garbled"),
        _("Its fonts or its encoding do not say which characters are meant, so a search would find nonsense."),
        _("For a text file choose its encoding. For a PDF export it again from the program that made it."),
        "encoding",
    ),
    "locked": Reason(
        _("Locked"),
        _("The file is protected by a password"),
        _("It cannot be opened without it."),
        _("A PDF: enter its password on its page, it is used once and not kept. Any other file: upload a copy without the password."),
        "upload",
    ),
    "wrong_password": Reason(
        _("Wrong password"),
        _("The password does not open the file"),
        _("It was tried once and was not kept."),
        _("Enter the password again; capitals and small letters differ."),
        "password",
    ),
    "unsupported_type": Reason(
        _("Unknown type"),
        _("This kind of file is not supported"),
        _("What is inside is none of the types the portal knows, whatever the name says."),
        _("Convert it to PDF, Word, Excel, HTML, Markdown or text and upload it again."),
        "upload",
    ),
    "corrupt": Reason(
        _("Damaged"),
        _("The file is damaged"),
        _("It ends too early or breaks the rules of its format."),
        _("Open it in its own program, save it again and upload that copy."),
        "upload",
        "danger",
    ),
    "unsafe": Reason(
        _("Refused"),
        _("The file is unsafe and was not read"),
        _("It declares outside entities, unpacks without end, or holds something else that could harm its reader."),
        _("Make a clean copy of the content and upload that."),
        "upload",
        "danger",
    ),
    "too_large": Reason(
        _("Too large"),
        _("The document is too large to read"),
        _("Unpacked or in characters it goes beyond the limit."),
        _("Split it into parts and upload those."),
        "upload",
    ),
    "too_many_pages": Reason(
        _("Too many pages"),
        _("The document has too many pages"),
        _("It goes beyond the number of pages that are read at once."),
        _("Split it into parts and upload those."),
        "upload",
    ),
    "timeout": Reason(
        _("Took too long"),
        _("Reading took too long"),
        _("The time for one document ran out."),
        _("Parse it again when less is going on, or split it into parts."),
        "reparse",
    ),
    "out_of_memory": Reason(
        _("Out of memory"),
        _("Reading needed too much memory"),
        _("The memory for one document ran out. Other documents were not affected."),
        _("Split it into parts, or compress its pictures, and upload it again."),
        "upload",
        "danger",
    ),
    "crashed": Reason(
        _("Reader broke"),
        _("The reader broke off"),
        _("The program that reads this format ended unexpectedly. Other documents were not affected."),
        _("Parse it again. If it breaks off again, save the file anew in its own program and upload that."),
        "reparse",
        "danger",
    ),
    "no_space": Reason(
        _("Disk full"),
        _("The disk is full"),
        _("There was no room to store what was read."),
        _("Delete documents you no longer need, or ask the administrator for space. Then parse it again."),
        "reparse",
        "danger",
    ),
    "embedding_unavailable": Reason(
        _("No vectors"),
        _("Vectors could not be made"),
        _("The embedding model did not answer. The document is found by its words, but not by similar meaning."),
        _("Parse it again when the model is back."),
        "reparse",
    ),
    "fetch_failed": Reason(
        _("Not reachable"),
        _("The address could not be fetched"),
        _("The server did not answer, refused, or the page is gone."),
        _("Open the address in your browser. When it works there, try again; otherwise upload the file itself."),
        "reparse",
        kept=_("The address is kept."),
    ),
    "storage_unavailable": Reason(
        _("File store away"),
        _("The file store could not be used"),
        _("The place where originals are kept did not answer, although it was tried several times."),
        _("Tell the administrator; /healthz/ready and the log name the cause. Then parse the document again."),
        "reparse",
        "danger",
        kept=_("Nothing that was stored is lost."),
    ),
    "original_missing": Reason(
        _("File missing"),
        _("The original is missing from the file store"),
        _("The portal knows this document, but its file is not where it was put."),
        _("Upload the file again, or ask the administrator to restore it from a backup."),
        "upload",
        "danger",
        kept=_("Its entry, its tags and its settings are kept."),
    ),
    "stalled": Reason(
        _("Stalled"),
        _("The work stopped without a word"),
        _("Every process that took it up went away before it was done."),
        _("Parse it again. If it stalls again, ask the administrator to look at the workers."),
        "reparse",
        "danger",
    ),
    "cancelled": Reason(
        _("Stopped"),
        _("Stopped by a user"),
        _("Someone stopped the work on it. Passages it had before can still be found."),
        _("Parse it again to go on."),
        "reparse",
        "",
    ),
    "internal": Reason(
        _("Failed"),
        _("Something went wrong on our side"),
        _("The reason is not known; it was written to the log."),
        _("Parse it again. If it fails again, tell the administrator the time and the name of the document."),
        "reparse",
        "danger",
    ),
}

#: What is wrong with an embedding endpoint is said once, for documents and for the page of models.
REASONS |= {
    code: Reason(
        failure.word,
        failure.why,
        _("The document is found by its words, but not by meaning until its vectors are made."),
        failure.next,
        "reparse",
    )
    for code, failure in FAILURES.items()
    if code not in REASONS
}

#: A locked PDF is opened here; an encrypted Office file has to come in without its password. `REASONS["locked"]` speaks of both.
LOCKED_PDF = replace(
    REASONS["locked"], next=_("Enter the password: it is used once and not kept. Or upload a copy without it."), step="password"
)
LOCKED_OTHER = replace(REASONS["locked"], next=_("Save a copy without the password and upload that."))

#: Waiting and silence: not failures, but states that ask for somebody.
NO_WORKER = Reason(
    _("No worker"),
    _("No worker is running"),
    _("Nobody is there to do the work, so it waits."),
    _("It starts by itself as soon as a worker runs. Ask the administrator to start one."),
    "",
)


def waiting_for_model(code: str) -> Reason:
    """Why the vectors of a document are not there yet: its endpoint fails now and is tried again."""
    failure = failure_of(code)
    return Reason(
        failure.word,
        _("Waiting for the embedding model"),
        failure.why,
        _("It is tried again by itself. Until then the document is found by its words."),
        "",
        "",
    )


STALLED = Reason(
    _("Not moving"),
    _("Nothing has happened for 20 minutes"),
    _("The work seems to be lost."),
    _("Stop it and parse it again."),
    "reparse",
)
QUEUED_LONG = Reason(
    _("Long wait"),
    _("Waiting for more than 20 minutes"),
    _("Other documents are before it, or the workers are busy."),
    _("Nothing is lost. It goes on by itself."),
    "",
    "",
)


def reason_of(code: str) -> Reason:
    """The words of a code where no document is at hand; those of `internal` when the code is not on the list."""
    return REASONS.get(code, REASONS["internal"])


def reason_for(document: Document) -> Reason:
    """The words for a document that has a reason."""
    if document.reason == "locked":
        return LOCKED_PDF if is_pdf(document) else LOCKED_OTHER
    return reason_of(document.reason)


def asks_password(document: Document) -> bool:
    """Whether the next parse needs the password of the file: it is locked, or it was opened with one that was not kept."""
    if document.parse_status == ParseStatus.FAILED:
        return is_pdf(document) and document.reason in ("locked", "wrong_password")
    return opened_with_password(document)


def message_of(document: Document) -> str:
    """One line for `error_message` (contract knowledge 4.1): what happened and what to do next; "" unless it failed or was stopped.

    What the parser itself said stays in the trace (`last_error`).
    """
    if document.parse_status not in (ParseStatus.FAILED, ParseStatus.CANCELLED):
        return ""
    if document.reason not in REASONS:
        return document.error_message
    words = reason_for(document)
    return f"{words.title}{_(': ')}{words.next}"


COPY_ENDS: dict[str, Any] = {
    "source_deleted": _("The base to copy was deleted meanwhile."),
    "target_deleted": _("The target base was deleted meanwhile."),
    "being_moved": _("A document of the target is being moved to another base. Copy again when that is done."),
    "no_space": _("There is not enough disk space. Make room, then copy again."),
    "storage_unavailable": _("The file store could not be used for a long time. Copy again when it is back."),
    "stalled": _("The worker stopped every time it was tried. Copy again; if it stays so, tell the administrator."),
}


def copy_error(state: str, reason: str) -> str:
    """Why a copy of a base ended without being whole, and the next step; "" when it did not."""
    if state != "failed":
        return ""
    return str(COPY_ENDS.get(reason, _("Something went wrong on our side. Copy again; if it happens again, tell the administrator.")))


MOVE_PROBLEMS: dict[str, Any] = {
    "target_deleted": _("The target base was deleted meanwhile."),
    "deleted": _("A document was deleted meanwhile."),
    "elsewhere": _("%(title)s: it is in another base by now."),
    "same_content": _("%(title)s: the target base has the same content already."),
}


def move_problem(code: str, title: str = "") -> str:
    """Why a document stayed where it was, as a run keeps it: one line of a code and the title, in no language."""
    return f"{code}\t{' '.join(title.split())}".rstrip("\t")


def move_problems(kept: str) -> list[str]:
    """What a run kept, in the reader's language; lines of another kind as they are."""
    told = []
    for line in filter(None, kept.split("\n")):
        code, _tab, title = line.partition("\t")
        told.append(str(MOVE_PROBLEMS[code]) % {"title": title} if code in MOVE_PROBLEMS else line)
    return list(dict.fromkeys(told))
