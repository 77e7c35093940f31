"""Files of requests on their way in: written to this process's temporary folder, so that a killed one leaves nothing for good."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler

from apps.common.storage import temp_folder


class TemporaryUpload(TemporaryUploadedFile):
    """Django's own, in a folder of ours."""

    def __init__(self, name: str, content_type: str, size: int, charset: Any, content_type_extra: Any = None) -> None:
        suffix = ".upload" + os.path.splitext(name)[1][:20]
        file = tempfile.NamedTemporaryFile(suffix=suffix, dir=temp_folder())
        UploadedFile.__init__(self, file, name, content_type, size, charset, content_type_extra)


class UploadHandler(TemporaryFileUploadHandler):
    """Every file of a request on disk from its first byte."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        FileUploadHandler.new_file(self, *args, **kwargs)
        self.file: Any = TemporaryUpload(str(self.file_name), str(self.content_type), 0, self.charset, self.content_type_extra)
