"""How the Warp wire is written down in the golden folders: protobuf text, one paragraph for each event."""

import base64
import re
from typing import Final

from google.protobuf import text_format

from adapters.warp.multi_agent_pb2 import ResponseEvent


def _read_events(text: str) -> bytes:
    return b"".join(_frame(event) for event in re.split(r"\n\s*\n", text.strip()))


def _frame(text: str) -> bytes:
    event = text_format.Parse(text, ResponseEvent())
    return b"event:data\ndata:" + base64.urlsafe_b64encode(event.SerializeToString()) + b"\n\n"


READERS: Final = {".textproto": _read_events}
