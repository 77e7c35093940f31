"""Files that open with a password, made in code."""

from __future__ import annotations

import io
from typing import Any

from tests.ingestion.builders import pdf


def locked_pdf(*pages: str, password: str, owner: str = "owner", revision: int = 6, damaged: int = 0, data: bytes = b"") -> bytes:
    """A PDF of one line per page that opens with `password` ("" for everybody); page `damaged` (1-based) cannot be unpacked."""
    import pikepdf

    document = pikepdf.open(io.BytesIO(data or pdf([[(72, 700, text)] for text in pages])))
    if damaged:
        document.pages[damaged - 1].Contents = pikepdf.Stream(document, b"replaced below")
        document.pages[damaged - 1].Contents.write(b"x\x9c" + b"\x55\xaa" * 60, filter=pikepdf.Name.FlateDecode)
    allow: Any = pikepdf.Permissions(extract=False, modify_other=False, modify_form=False, print_highres=False, print_lowres=False)
    out = io.BytesIO()
    encryption = pikepdf.Encryption(user=password, owner=owner, R=revision, allow=allow, aes=revision >= 4, metadata=revision >= 4)
    document.save(out, encryption=encryption)
    return out.getvalue()


def encrypted_office() -> bytes:
    """The outside of an Office file that was saved with a password: a compound file whose directory names EncryptedPackage."""
    names = ["Root Entry", "EncryptionInfo", "EncryptedPackage"]
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504
    entries = b"".join(name.encode("utf-16-le").ljust(64, b"\0") + b"\0" * 64 for name in names)
    return header + entries.ljust(1024, b"\0")
