from apps.knowledge.models.base import BaseVisit, KnowledgeBase, Pin
from apps.knowledge.models.chunk import Chunk, ChunkRevision, passage_hash
from apps.knowledge.models.document import IN_FLIGHT, UNREAD, Document, DocumentTag, DocumentVersion, ParseStatus
from apps.knowledge.models.image import SCHEME, DocumentImage
from apps.knowledge.models.runs import CleanupRun, CopyRun, MoveRun
from apps.knowledge.models.tag import Tag

__all__ = [
    "IN_FLIGHT",
    "UNREAD",
    "SCHEME",
    "BaseVisit",
    "Chunk",
    "ChunkRevision",
    "CleanupRun",
    "CopyRun",
    "Document",
    "DocumentImage",
    "DocumentTag",
    "DocumentVersion",
    "KnowledgeBase",
    "MoveRun",
    "ParseStatus",
    "Pin",
    "Tag",
    "passage_hash",
]
