"""Sample data of the style guide: every component in every state, in the reader's language."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html

STATES = "pending processing finalizing completed failed cancelled draft deleting stalled approved rejected review unknown".split()
COLOURS = (
    "sunken bg surface raised hover pressed text text-soft text-faint accent accent-soft control focus info success warning danger mark"
).split()
SECTIONS = "colour type buttons overlays fields states navigation lists time knowledge uploads".split()
HUES = "blue orange green purple pink slate".split()

_WORDS: dict[str, dict[str, str]] = {
    "zh": {
        "space": "示例团队",
        "me": "林一舟",
        "base": "产品与售后",
        "ask": "提问",
        "bases": "知识库",
        "review": "审核",
        "gaps": "知识缺口",
        "sources": "数据源",
        "to_review": "7 待审",
        "handbook": "员工手册",
        "hub": "硬件规格 HUB-Pro",
        "doc1": "传感器-温度-TH01 安装说明.docx",
        "doc2": "HUB-Pro 维修手册（1,600 页）.pdf",
        "doc3": "保修合同-扫描-0417.pdf",
        "doc4": "供应商报价（加密）.pdf",
        "doc5": "这是一个非常长的文件名用来检查在窄屏和窄列里会不会把版面撑破以及省略号是否出现-最终版-2026Q4-修订3.xlsx",
        "folder": "安装与维修",
        "folder2": "会议纪要",
        "folder3": "合同扫描件",
        "sensor": "传感器",
        "hub_folder": "中控",
        "all": "全部",
        "tag1": "检修",
        "tag2": "报价",
        "name": "名称",
        "state": "状态",
        "tags": "标签",
        "chunks": "分块",
        "updated": "更新",
        "yesterday": "昨天",
        "page12": "第 12 页",
        "row21": "第 21 行",
        "changed": "引用后有修改",
        "ocr": "没有文字层，需要 OCR",
        "why_locked": "文件设了密码，我们打不开它。",
        "next_locked": "输入一次密码即可解析，密码不会保存。",
        "kept": "原件已保存。",
        "enter_password": "输入密码",
        "documents": "文档",
        "faq": "问答",
        "settings": "设置",
        "empty_title": "这个文件夹还没有文档",
        "empty_text": "上传的文件会出现在这里，几秒后就能搜到。",
        "upload": "上传",
        "worker": "没有后台进程在运行，新上传的文件会一直等待。",
        "see_tasks": "查看任务",
        "filter": "标签：检修",
        "by_type": "类型",
        "move": "移动",
        "delete": "删除",
        "rename": "重命名",
        "admins_only": "只有管理员可以删除知识库",
        "confirm_title": "删除 3 份文档？",
        "confirm_text": "会删除 3 份文档、118 个分块和它们的图片。引用过它们的回答会保留，并注明来源已删除。",
        "sentence": "TH01 温度传感器每季度校准一次，校准记录保存两年。",
    },
    "en": {
        "space": "Sample team",
        "me": "Robin Lin",
        "base": "Product and service",
        "ask": "Ask",
        "bases": "Knowledge",
        "review": "Review",
        "gaps": "Gaps",
        "sources": "Sources",
        "to_review": "7 to review",
        "handbook": "Staff handbook",
        "hub": "Hardware HUB-Pro",
        "doc1": "Sensor TH01 installation.docx",
        "doc2": "HUB-Pro repair manual (1,600 pages).pdf",
        "doc3": "Warranty contract scan 0417.pdf",
        "doc4": "Supplier quote (locked).pdf",
        "doc5": "A very long file name that checks whether narrow columns and phones stay in shape final version 2026Q4 revision 3.xlsx",
        "folder": "Installation",
        "folder2": "Minutes",
        "folder3": "Contract scans",
        "sensor": "Sensors",
        "hub_folder": "Controllers",
        "all": "All",
        "tag1": "service",
        "tag2": "quotes",
        "name": "Name",
        "state": "State",
        "tags": "Tags",
        "chunks": "Chunks",
        "updated": "Updated",
        "yesterday": "yesterday",
        "page12": "page 12",
        "row21": "row 21",
        "changed": "changed since cited",
        "ocr": "No text layer, needs OCR",
        "why_locked": "The file has a password, so it cannot be opened.",
        "next_locked": "Enter the password once to read it. It is not stored.",
        "kept": "The original is stored.",
        "enter_password": "Enter password",
        "documents": "Documents",
        "faq": "Questions",
        "settings": "Settings",
        "empty_title": "No documents in this folder yet",
        "empty_text": "Files you upload appear here and can be found within seconds.",
        "upload": "Upload",
        "worker": "No background process is running; new files will wait.",
        "see_tasks": "See tasks",
        "filter": "Tag: service",
        "by_type": "Type",
        "move": "Move",
        "delete": "Delete",
        "rename": "Rename",
        "admins_only": "Only administrators may delete a knowledge base",
        "confirm_title": "Delete 3 documents?",
        "confirm_text": "Deletes 3 documents, 118 chunks and their images. Answers citing them stay and say that the source is gone.",
        "sentence": "Calibrate the TH01 sensor every quarter and keep the record for two years.",
    },
}

# What a rendered document looks like: headings, lists, tables, a formula, a diagram.
_PROSE = (
    "<h2>{folder}</h2><p>{sentence} <mark>ERR-4021</mark> <a href='#'>{doc1}</a></p>"
    "<ul><li>{sensor}</li><li><code>v1.10.2</code></li></ul><blockquote><p>{sentence}</p></blockquote>"
    "<div class='table-scroll'><table><thead><tr><th>A</th><th>B</th></tr></thead>"
    "<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>"
    r"<div class='arithmatex'>\[ s(q, d) = \tfrac{{1}}{{2}}\,\hat{{b}}(q, d) + \tfrac{{1}}{{2}}\,\hat{{v}}(q, d) \]</div>"
    "<pre class='mermaid'>flowchart LR\n  A[{upload}] --> B[{documents}] --> C[{ask}]\n</pre>"
)


def sample_shell(language: str) -> dict[str, Any]:
    """A filled `shell` (see templates/base_app.html) for looking at the frame."""
    w = _WORDS["zh" if language.startswith("zh") else "en"]
    return {
        "space": {"name": w["space"], "kind": "organization", "url": "#"},
        "spaces": [
            {"name": w["me"], "kind": "personal", "url": "#", "current": False},
            {"name": w["space"], "kind": "organization", "url": "#", "current": True},
        ],
        "nav": [
            {"label": w["ask"], "href": "#", "icon": "ask", "current": False, "count": None},
            {"label": w["bases"], "href": "#", "icon": "base", "current": True, "count": 12},
            {"label": w["review"], "href": "#", "icon": "review", "current": False, "count": w["to_review"], "attention": True},
            {"label": w["gaps"], "href": "#", "icon": "gap", "current": False, "count": 23},
            {"label": w["sources"], "href": "#", "icon": "source", "current": False, "count": 4},
        ],
        "recent_bases": [{"name": w[key], "href": "#", "current": False} for key in ("base", "handbook", "hub")],
        "user": {"name": w["me"], "email": "robin@example.org", "links": [{"label": w["settings"], "href": "#", "icon": "settings"}]},
        "worker_warning": {"text": w["worker"], "href": "#", "action": w["see_tasks"]},
        "commands": [
            {"label": w[key], "href": "#", "icon": icon} for key, icon in (("ask", "ask"), ("bases", "base"), ("review", "review"))
        ],
        "languages": [
            {"code": "zh-hans", "name": "中文", "current": language.startswith("zh")},
            {"code": "en", "name": "English", "current": not language.startswith("zh")},
        ],
        "language_url": "#",
    }


def sample_context(language: str) -> dict[str, Any]:
    """Everything templates/portal/styleguide.html shows."""
    w = _WORDS["zh" if language.startswith("zh") else "en"]
    return {"w": w, "sections": SECTIONS, "states": STATES, "colours": COLOURS, "hues": HUES, **_lists(w), **_texts(w)}


def _lists(w: dict[str, str]) -> dict[str, Any]:
    def row(key: str, state: str, reason: str, tags: list[str], chunks: Any, when: str, edit: bool = False) -> dict[str, Any]:
        status = {"template": "portal/_styleguide_status.html", "data": {"state": state, "reason": reason}}
        marks = {"template": "portal/_styleguide_tags.html", "data": {"tags": tags}}
        cells = [{"text": w[key], "href": "#", "sub": w["folder"]}, status, marks, chunks, when]
        return {"id": key, "label": w[key], "cells": cells, "edit_href": "#" if edit else ""}

    return {
        "columns": [
            {"label": w["name"], "kind": "main", "sort": "ascending", "href": "#"},
            {"label": w["state"]},
            {"label": w["tags"], "hide_phone": True},
            {"label": w["chunks"], "kind": "num", "phone_label": True},
            {"label": w["updated"], "kind": "time", "sort": "none", "href": "#"},
        ],
        "rows": [
            row("doc1", "completed", "", [w["tag1"]], 42, "10:42", edit=True),
            row("doc2", "processing", "994 / 1,600", [w["tag1"]], "3,120", "10:41"),
            row("doc3", "failed", w["ocr"], [w["tag1"]], 0, w["yesterday"]),
            row("doc4", "stalled", w["why_locked"], [w["tag2"]], None, w["yesterday"]),
            row("doc5", "pending", "", [w["tag1"], w["tag2"]], None, "11-28"),
        ],
        "tabs": [
            {"label": w["documents"], "href": "#", "current": True, "count": "1,284"},
            {"label": w["faq"], "href": "#", "count": 312},
            {"label": "Wiki", "href": "#", "count": 96},
            {"label": w["sources"], "href": "#", "count": None},
            {"label": w["settings"], "href": "#"},
        ],
        "crumbs": [{"label": w["bases"], "href": "#"}, {"label": w["base"], "href": "#"}, {"label": w["folder"]}],
        "tree": [
            {
                "label": w["all"],
                "href": "#",
                "open": True,
                "count": "1,284",
                "icon": "base",
                "children": [
                    {
                        "label": w["folder"],
                        "href": "#",
                        "open": True,
                        "current": True,
                        "count": 86,
                        "children": [
                            {"label": w["sensor"], "href": "#", "count": 31},
                            {"label": w["hub_folder"], "href": "#", "count": 40},
                        ],
                    },
                    {"label": w["folder2"], "href": "#", "count": 120, "open": False, "children": [{"label": "2026", "href": "#"}]},
                    {"label": w["folder3"], "href": "#", "count": 402},
                ],
            },
        ],
        "menu": [
            {"label": w["rename"], "icon": "edit"},
            {"label": w["move"], "icon": "move", "note": w["folder"]},
            {"line": True},
            {"label": w["delete"], "icon": "trash", "danger": True, "dialog": "guide-confirm"},
            {"label": w["delete"], "icon": "trash", "disabled": True, "reason": w["admins_only"]},
        ],
        "views": [{"label": w["documents"], "icon": "list", "current": True}, {"label": w["bases"], "icon": "cards"}],
        "views_text": [{"label": "7", "current": True}, {"label": "30"}, {"label": "90"}],
        "options": [
            {"value": key, "label": w[key], "note": note} for key, note in (("folder", "86"), ("folder2", "120"), ("folder3", "402"))
        ],
        "chosen": [{"value": "folder", "label": w["folder"]}],
        "pages": [
            {"number": 1, "href": "#"},
            {"number": 2, "href": "#", "current": True},
            {"number": 3, "href": "#"},
            {"gap": True},
            {"number": 26, "href": "#"},
        ],
        "card_meta": ["1,284", w["yesterday"]],
    }


def _texts(w: dict[str, str]) -> dict[str, Any]:
    return {
        "stages": [
            {"label": "parse", "state": "done"},
            {"label": "chunk", "state": "done"},
            {"label": "index", "state": "running"},
            {"label": "embed", "state": "waiting"},
        ],
        "spans": [
            {"name": "parse", "state": "done", "start": 0, "length": 38, "time": "4.2 s"},
            {"name": "chunk", "state": "done", "start": 38, "length": 6, "time": "0.6 s"},
            {"name": "index", "state": "running", "start": 44, "length": 20.5, "time": "2.1 s", "detail": "3,120 / 5,400"},
            {"name": "embed", "state": "failed", "start": 64.5, "length": 12, "time": "1.3 s", "detail": w["why_locked"]},
            {"name": "enrich", "state": "skipped", "start": 0, "length": None, "time": None},
            {"name": "finalize", "state": "waiting", "start": 0, "length": None, "time": None},
        ],
        "events": [
            {"who": w["me"], "text": w["move"] + " → " + w["folder2"], "when": "10:42", "icon": "move"},
            {"who": w["me"], "text": w["doc1"], "when": w["yesterday"], "icon": "upload", "href": "#", "note": w["sentence"]},
            {"who": "", "text": w["doc3"], "when": w["yesterday"]},
        ],
        "facts": [
            {"label": "ID", "value": "7f3c2a9e-0b7d", "mono": True, "copyable": True},
            {"label": w["updated"], "value": "2026-11-28 10:42"},
            {"label": w["chunks"], "value": None},
            {"label": w["sources"], "value": "example.org", "href": "#"},
        ],
        "diff_lines": [
            {"kind": "gap", "text": "@@ 4.2"},
            {"kind": "same", "old_no": 11, "new_no": 11, "text": w["sentence"]},
            {
                "kind": "removed",
                "old_no": 12,
                "text": "",
                "parts": [{"kind": "same", "text": "ERR-4021: 85 "}, {"kind": "removed", "text": "°F"}],
            },
            {
                "kind": "added",
                "new_no": 12,
                "text": "",
                "parts": [{"kind": "same", "text": "ERR-4021: 85 "}, {"kind": "added", "text": "°C"}],
            },
        ],
        "diff_words": [
            {"kind": "same", "text": w["sentence"][:8]},
            {"kind": "removed", "text": w["tag1"]},
            {"kind": "added", "text": w["tag2"]},
            {"kind": "same", "text": w["sentence"][8:]},
        ],
        "code": 'def answer(question: str) -> Answer:\n    """<b>Escaped</b>, never run."""\n    return search(question, limit=20)\n',
        "prose": format_html(_PROSE, **w),
    }
