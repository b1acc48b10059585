"""How the Warp wire is written down in the golden folders: protobuf text, one paragraph for each event."""

import base64
import re
from typing import Final

from google.protobuf import text_format

from adapters.warp.multi_agent_pb2 import Request, ResponseEvent
from gateway.testing.golden import Form


def _show_request(body: bytes) -> str:
    return text_format.MessageToString(Request.FromString(body), as_utf8=True)


def _read_events(text: str) -> bytes:
    # An answer that is no stream (an HTTP error) is a paragraph between braces or a page.
    if text.startswith(("{", "<")):
        return text.encode()
    return b"".join(_frame(event) for event in re.split(r"\n\s*\n", text.strip()))


def _frame(text: str) -> bytes:
    event = text_format.Parse(text, ResponseEvent())
    return b"event:data\ndata:" + base64.urlsafe_b64encode(event.SerializeToString()) + b"\n\n"


FORMS: Final = {"adapters.warp:WarpAdapter": Form(_show_request, _read_events)}
