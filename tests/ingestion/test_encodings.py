"""Bytes to text: the same words whatever they were saved as (public report kind: Chinese CSV and TXT come out as mojibake)."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.ingestion.plugins.encodings import canonical, decode, decode_html
from apps.ingestion.plugins.protocol import ParseFailure
from tests.ingestion import builders as make

ROWS = [["问题", "答案"]] + [[f"如何重置设备{i}的密码？", f"长按复位键{i}秒，等待指示灯闪烁后松开"] for i in range(1, 20)]
FAQ = "\n".join(",".join(row) for row in ROWS) + "\n"
TRADITIONAL = "問題,答案\n" + "如何重設裝置的密碼？,長按重設鍵五秒，等待指示燈閃爍後放開\n" * 19


@pytest.mark.parametrize(
    ("codec", "shown"),
    [
        ("gbk", "gb18030"),
        ("gb18030", "gb18030"),
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
    ],
)
def test_one_csv_in_every_encoding_gives_one_text(codec: str, shown: str, tmp_path: Path) -> None:
    rare = FAQ + "㐂𠮷,生僻字\n" if codec != "gbk" else FAQ
    document = make.read_bytes(tmp_path, "faq.csv", rare.encode(codec))
    plain = make.read_bytes(tmp_path, "faq.csv", rare.encode())
    assert document.text == plain.text
    assert document.encoding == shown


def test_big5() -> None:
    found = decode(TRADITIONAL.encode("big5"))
    assert (found.text, found.encoding, found.replaced) == (TRADITIONAL, "big5", 0)


@pytest.mark.parametrize("text", ["安全生产规程", "安全生产", "电缆", "设备编号 TH-7781 每季度校准一次", "你好，世界"])
def test_short_gbk(text: str) -> None:
    assert decode(text.encode("gbk")).text == text


def test_one_chinese_line_at_the_end_of_a_long_ascii_file() -> None:
    data = b"2026-11-30 10:00:00 INFO request served in 12 ms\n" * 20_000 + "错误：磁盘空间不足\n".encode("gbk")
    found = decode(data)
    assert found.encoding == "gb18030"
    assert found.text.endswith("错误：磁盘空间不足\n")


def test_a_few_broken_bytes_leave_utf8_utf8() -> None:
    found = decode("标题\n正文".encode() + b"\xff\xfe\xc3\x28\xf0\x28\x8c\xbc" + "结尾".encode())
    assert found.encoding == "utf-8"
    assert found.text.startswith("标题\n正文") and found.text.endswith("结尾")
    assert found.replaced == 6


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("Größe übermäßig schön, Straße, Müller und Söhne", "cp1252"),
        ("これはテストの文章です。日本語の文字コードを確認します。", "shift_jis"),
        ("이것은 한국어 문장입니다. 문자 인코딩을 확인합니다.", "euc_kr"),
        ("これはテストです", "iso2022_jp"),
    ],
)
def test_other_alphabets(text: str, codec: str) -> None:
    assert decode(text.encode(codec)).text == text


def test_the_override_is_honoured_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    data = "安全生产".encode("big5", "ignore") + b"\xa4\xa4"
    assert decode(data, "big5").encoding == "big5"
    document = make.read_bytes(tmp_path, "a.txt", "测试".encode("gbk"), encoding="latin-1")
    assert document.text == "²âÊÔ" and document.encoding == "cp1252"
    with pytest.raises(ParseFailure) as caught:
        decode(b"x", "klingon")
    assert caught.value.details == {"field": "encoding"} and "klingon" in caught.value.message
    with pytest.raises(ParseFailure):
        decode(b"x", "base64")


@pytest.mark.parametrize(("name", "codec"), [("GB2312", "gb18030"), ("gbk", "gb18030"), ("UTF8", "utf-8"), ("nonsense", ""), ("rot13", "")])
def test_canonical(name: str, codec: str) -> None:
    assert canonical(name) == codec


PAGE = "<html><head>{meta}<title>国庆免费大酬宾</title></head><body><p>魔力宝贝免费玩，搜狐在线</p></body></html>"


@pytest.mark.parametrize(
    ("header", "meta"),
    [("gbk", ""), ("", "<meta charset=gb2312>"), ("utf-8", "<meta charset=gbk>"), ("big5", "<meta charset='iso-8859-1'>"), ("", "")],
    ids=["header", "meta", "conflict", "both wrong", "neither"],
)
def test_a_gbk_page_is_read_whatever_it_claims(header: str, meta: str, tmp_path: Path) -> None:
    data = PAGE.format(meta=meta).encode("gbk")
    found = decode_html(data, "", header)
    assert found.encoding == "gb18030" and "国庆免费大酬宾" in found.text
    document = make.read_bytes(tmp_path, "a.html", data, charset_hint=header)
    assert document.title == "国庆免费大酬宾"
    assert document.text == "魔力宝贝免费玩，搜狐在线"


def test_valid_utf8_beats_both_claims() -> None:
    data = PAGE.format(meta="<meta charset=gbk>").encode()
    assert decode_html(data, "", "gb18030").encoding == "utf-8"
