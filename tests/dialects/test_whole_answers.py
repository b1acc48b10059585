"""A whole answer is the document that a client makes of the stream of the same events, in every dialect.

Each dialect has a fold of its stream, as its clients do it: those of chat completions as `ChatCompletionStreamState` of
OpenAI's SDK, those of messages as `accumulate_event` of Anthropic's SDK; the stream of responses ends with the object
itself, and clients of the other three add up texts, lists and the fields of the last chunk.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.events import Event, Finish, ReasoningEnd
from gateway.core.provider_state import with_provider_state
from gateway.registry import DIALECTS
from gateway.testing.dialect_case import HEAD, DialectCase, greeting
from gateway.testing.strategies import answers, arguments
from tests.dialects.cases import CASES

# Any: a document, read with json.
Document: TypeAlias = dict[str, Any]


def sent(data: bytes) -> Iterator[Document]:
    """The objects of a stream of events or lines."""
    for line in data.split(b"\n"):
        payload = line.removeprefix(b"data: ")
        if payload.startswith(b"{"):
            yield json.loads(payload)


def chat(data: bytes) -> Document:
    whole: Document = {}
    choice: Document = {"message": {}}
    for chunk in sent(data):
        for one in chunk.pop("choices"):
            grow(choice["message"], one.pop("delta"))
            choice |= {name: value for name, value in one.items() if value is not None}
        whole |= {name: value for name, value in chunk.items() if value is not None}
    for call in choice["message"].get("tool_calls", ()):
        del call["index"]
    return {**whole, "object": "chat.completion", "choices": [choice]}


def grow(target: Document, delta: Mapping[str, Any]) -> None:
    """Text grows, an entry of a list grows where it has the index of one before, any other value replaces."""
    for name, value in delta.items():
        before = target.get(name)
        if isinstance(before, str) and isinstance(value, str) and name not in ("role", "id", "type"):
            target[name] = before + value
        elif isinstance(before, dict) and isinstance(value, dict):
            grow(before, value)
        elif isinstance(value, list):
            entries = target.setdefault(name, [])
            for entry in value:
                known = next((one for one in entries if one["index"] == entry["index"]), None)
                if known is None:
                    entries.append(entry)
                else:
                    grow(known, entry)
        elif value is not None:
            target[name] = value


def messages(data: bytes) -> Document:
    message: Document = {}
    inputs: dict[int, str] = {}
    for event in sent(data):
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                assert event["index"] == len(message["content"])
                message["content"].append(event["content_block"])
            case "content_block_delta":
                block, delta = message["content"][event["index"]], event["delta"]
                match delta["type"]:
                    case "text_delta":
                        block["text"] += delta["text"]
                    case "thinking_delta":
                        block["thinking"] += delta["thinking"]
                    case "signature_delta":
                        block["signature"] = delta["signature"]
                    case "input_json_delta":
                        inputs[event["index"]] = inputs.get(event["index"], "") + delta["partial_json"]
                        block["input"] = inputs[event["index"]]
                    case other:
                        raise AssertionError(f"a delta of no known type: {other}")
            case "message_delta":
                message |= event["delta"]
                message["usage"] |= event["usage"]
                message |= {name: event[name] for name in ("dragoman",) if name in event}
            case _:
                pass
    for block in message["content"]:
        if isinstance(block.get("input"), str):
            block["input"] = json.loads(block["input"])
    return message


def responses(data: bytes) -> Document:
    response: Document = [*sent(data)][-1]["response"]
    return response


def gemini(data: bytes) -> Document:
    whole: Document = {}
    parts: list[Document] = []
    for chunk in sent(data):
        for part in chunk["candidates"][0]["content"]["parts"]:
            last = parts[-1] if parts else {}
            if "text" in part and "text" in last and kind(part) == kind(last):
                last["text"] += part["text"]
            elif part != {"text": ""}:
                parts.append(part)
        whole |= chunk
    whole["candidates"][0]["content"]["parts"] = parts or [{"text": ""}]
    return whole


def interactions(data: bytes) -> Document:
    steps: list[Document] = []
    interaction: Document = {}
    for line in data.split(b"\n"):
        event = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: {") else {}
        delta = event.get("delta", {})
        match event.get("event_type"), delta.get("type"):
            case "step.start", _:
                steps.append(event["step"])
            case "step.delta", "text":
                steps[-1].setdefault("content", [{"type": "text", "text": ""}])[0]["text"] += delta["text"]
            case "step.delta", "thought_summary":
                piece = steps[-1].setdefault("summary", [{"type": "text", "text": ""}])[0]
                piece["text"] += delta["content"]["text"]
            case "step.delta", "arguments_delta":
                steps[-1]["arguments"] = (steps[-1]["arguments"] or "") + delta["arguments"]
            case "step.delta", "thought_signature":
                steps[-1]["signature"] = delta["signature"]
            case "interaction.completed", _:
                interaction = event["interaction"]
            case _:
                pass
    for step in steps:
        if isinstance(step.get("arguments"), str):
            step["arguments"] = json.loads(step["arguments"])
    return {**interaction, "steps": steps}


def kind(part: Document) -> tuple[bool, bool]:
    """Whether a part is a thought; one with a signature grows with no other."""
    return bool(part.get("thought")), "thoughtSignature" in part


def ollama(data: bytes) -> Document:
    content, calls = {"content": "", "thinking": ""}, []
    last: Document = {}
    for last in sent(data):
        for name in content:
            content[name] += last["message"].get(name, "")
        calls += last["message"].get("tool_calls", ())
    said = {name: text for name, text in content.items() if text or name == "content"}
    return {**last, "message": {"role": "assistant", **said, **({"tool_calls": calls} if calls else {})}}


def completions(data: bytes) -> Document:
    whole: Document = {}
    choice: Document = {"text": "", "index": 0, "logprobs": None}
    for chunk in sent(data):
        for one in chunk.pop("choices"):
            choice["text"] += one["text"]
            choice["finish_reason"] = one["finish_reason"]
        whole |= {name: value for name, value in chunk.items() if value is not None}
    return {**whole, "choices": [choice]}


FOLDS: Final[Mapping[str, Callable[[bytes], Document]]] = {
    "anthropic_messages": messages,
    "gemini": gemini,
    "gemini_interactions": interactions,
    "ollama": ollama,
    "openai_chat": chat,
    "openai_completions": completions,
    "openai_responses": responses,
}


@st.composite
def signed(draw: st.DrawFn, provider: str) -> Sequence[Event]:
    """The events of an answer, with state of the provider that clients of the dialect know."""
    events = draw(answers(arguments()))
    end = next(place for place, event in enumerate(events) if isinstance(event, Finish))
    for number, place in enumerate(sorted(draw(st.lists(st.integers(1, end), max_size=3)), reverse=True)):
        events.insert(place, ReasoningEnd(with_provider_state(provider or "p", {"signature": f"c2ln{number}AA"})))
    return events


def said(document: Document) -> Document:
    """A document without the members that say that there is nothing."""
    found: Document = json.loads(json.dumps(document), object_hook=_said)
    return found


def _said(fields: Document) -> Document:
    return {name: value for name, value in fields.items() if value not in (None, "")}


def test_every_dialect_has_its_fold() -> None:
    assert FOLDS.keys() == DIALECTS.keys()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_folded_stream_is_the_whole_answer(case: DialectCase) -> None:
    dialect, request = case.dialect(), greeting(case)

    @given(signed(case.provider))
    def law(events: Sequence[Event]) -> None:
        encoder = dialect.stream_encoder(request, HEAD)
        folded = FOLDS[dialect.name](encoder.feed(events) + encoder.close())
        assert said(folded) == said(json.loads(dialect.encode_answer(request, HEAD, events)))

    law()
