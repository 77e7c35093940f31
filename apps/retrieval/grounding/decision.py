"""Whether a turn looks into the knowledge bases: by default it does, and a short list of rules says when not."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from apps.retrieval.grounding.refs import parse_references

MIN_CHARS = 3
GREETINGS = frozenset({"你好", "hi", "hello", "在吗", "谢谢", "thanks", "thx", "ok", "好的"})
ABOUT_ASSISTANT = ("当前模型", "模型是什么", "怎么设置", "怎么用", "界面", "快捷键", "登录", "api key")
_EXPORT = re.compile(
    r"(?:请|帮我|麻烦)*(?:把.{0,12}?)?(?:导出|输出|保存|存)(?:为|成|到)?\s*(?:pdf|markdown|md|word|docx|html|图片)(?:文件|格式)?"
    r"|(?:please\s+)?(?:export|save)(?:\s+(?:this|it|the (?:answer|chat|conversation)))?(?:\s+(?:as|to))?"
    r"\s+(?:an?\s+)?(?:pdf|markdown|md|word|docx|html)(?: file)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """`rule` names the one that decided: no_base command explicit_reference too_short greeting about_assistant export default."""

    use: bool
    rule: str


def decide(message: str, kb_selected: bool) -> Decision:
    """The first rule that fits, in this order; what no rule takes is looked up."""
    text = message.strip()
    if not kb_selected:
        return Decision(False, "no_base")
    if text.startswith("/"):
        return Decision(False, "command")
    if parse_references(text):
        return Decision(True, "explicit_reference")
    if len(text) < MIN_CHARS:
        return Decision(False, "greeting" if _bare(text) in GREETINGS else "too_short")
    bare = _bare(text)
    if bare in GREETINGS:
        return Decision(False, "greeting")
    lowered = text.casefold()
    if any(words in lowered for words in ABOUT_ASSISTANT):
        return Decision(False, "about_assistant")
    if _EXPORT.fullmatch(text.strip(" 。.!！?？")):
        return Decision(False, "export")
    return Decision(True, "default")


def should_use_knowledge_base(message: str, kb_selected: bool) -> bool:
    """`decide` as a truth value."""
    return decide(message, kb_selected).use


def _bare(text: str) -> str:
    """Without punctuation, in small letters."""
    return "".join(sign for sign in text.casefold() if unicodedata.category(sign)[0] not in "PSZ").strip()
