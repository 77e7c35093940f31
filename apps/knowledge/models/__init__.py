from apps.knowledge.models.base import BaseVisit, KnowledgeBase, Pin
from apps.knowledge.models.chunk import Chunk, ChunkRevision
from apps.knowledge.models.document import Document, DocumentTag, ParseStatus
from apps.knowledge.models.tag import Tag

__all__ = ["BaseVisit", "Chunk", "ChunkRevision", "Document", "DocumentTag", "KnowledgeBase", "ParseStatus", "Pin", "Tag"]
