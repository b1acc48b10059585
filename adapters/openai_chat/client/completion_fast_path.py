# fast path: "requests/s", encodes a whole answer of one text without adding its events up
# budget: "request"
# law: tests/adapters/openai_chat/client/test_completion_fast_path.py
#      test_every_answer_is_encoded_as_it_is_in_full
"""Encodes the events of an answer that is one text with all of its token counts.

Nearly every whole answer has this form. Any other is added up and encoded from its parts.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import Event, Finish, PassthroughFields, ResponseStart, TextDelta, UsageReport
from gateway.core.notices import Notice

_encode: Final = msgspec.json.Encoder().encode


def encode_plain(events: Sequence[Event], id: str, created: int, model: str) -> bytes | None:
    """Returns the same bytes as `encode_completion` without diagnostics. None: the answer has another form."""
    text = ""
    finish: Finish | None = None
    usage: UsageReport | None = None
    of_response: JsonObject = EMPTY
    of_message: JsonObject = EMPTY
    for event in events:
        if type(event) is TextDelta and not text:
            text = event.text
        elif type(event) is Finish:
            finish = event
        elif type(event) is UsageReport and usage is None:
            usage = event
        elif type(event) is PassthroughFields and event.scope == "response" and not of_response:
            of_response = event.fields
        elif type(event) is PassthroughFields and event.scope == "delta" and not of_message:
            of_message = event.fields
        elif type(event) is not ResponseStart and type(event) is not Notice:
            return None
    if not text or finish is None or usage is None or usage.estimated:
        return None
    prompt, completion, total = usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
    if prompt is None or completion is None or total is None:
        return None
    message: dict[str, Json] = {"role": "assistant", "content": text, "refusal": None, **of_message}
    whole: dict[str, Json] = {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish.reason}],
        **of_response,
    }
    whole["usage"] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        **usage.extra,
    }
    return _encode(whole)
