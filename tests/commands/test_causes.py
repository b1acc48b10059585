"""Five broken histories, from the failed request of a client to its cause, by one command on the recording of it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway

HI: Final[dict[str, Json]] = {"role": "user", "content": "hi"}
WELL: Final[dict[str, Json]] = {"role": "user", "content": "Well?"}


def calling(call_id: str = "call_1", arguments: Json = '{"path":"a"}') -> dict[str, Json]:
    function: Json = {"name": "read_file", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(call_id: str = "call_1") -> dict[str, Json]:
    return {"role": "tool", "tool_call_id": call_id, "content": "7"}


class Broken(NamedTuple):
    """A history, the backend that meets it, the status that its client gets, and lines that the command prints."""

    messages: list[dict[str, Json]]
    backend: dict[str, Json]
    status: int
    lines: tuple[str, ...]
    path: str = "/v1/chat/completions"


def refusing(defect: str) -> dict[str, Json]:
    """A backend that refuses the history, which it gets as it is."""
    return {"adapter": "openai_chat", "base_url": f"demo:chat?defect={defect}", "repair": "off"}


STRICT: Final[dict[str, Json]] = {"adapter": "openai_chat", "base_url": "demo:chat", "repair": "strict"}
THOUGHT: Final[Json] = [{"type": "thinking", "thinking": "Hm", "signature": ""}, {"type": "text", "text": "Yes"}]
HISTORIES: Final[Mapping[str, Broken]] = {
    "orphan": Broken(
        [HI, result("call_9"), WELL],
        refusing("refuses_orphan"),
        400,
        ("request ID, 1 of 1: 400 ", "  messages[1].role TOOL_ORPHAN: ", "    Put tool messages directly after the"),
    ),
    "double ids": Broken(
        [HI, calling(), result(), calling(), result(), WELL],
        refusing("refuses_repeated_ids"),
        400,
        (
            "request ID, 1 of 1: 400 ",
            "  messages[3].tool_calls[0].id CALL_ID_DUPLICATE: the id 'call_",
        ),
    ),
    "missing result": Broken(
        [HI, calling(), WELL],
        refusing("refuses_unanswered"),
        400,
        ("request ID, 1 of 1: 400 ", "  messages[1].tool_calls CALLS_UNANSWERED: 1 of 1 calls have no tool message"),
    ),
    "object arguments": Broken(
        [HI, calling(arguments={"path": "a"}), result(), WELL],
        STRICT,
        400,
        (
            "request ID, 1 of 1: 400 invalid_value: messages[1] ",
            "  messages[1].tool_calls[0].function.arguments CALL_ARGS_TYPE: arguments is an object, not JSON text",
            "    Send the arguments exactly as the response contained them.",
        ),
    ),
    "unsigned thinking": Broken(
        [HI, {"role": "assistant", "content": THOUGHT}, WELL],
        {"adapter": "anthropic_messages", "base_url": "demo:messages"},
        200,
        (
            "request ID, 1 of 1: 200",
            "  messages[1].content[0] THINKING_UNSIGNED: messages[1].content[0] is thinking without a signature",
            "  encode messages[1] REASONING_NOT_SENT: ",
        ),
        "/v1/messages",
    ),
}


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("name", HISTORIES)
async def test_one_command_names_the_cause(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, file = HISTORIES[name], tmp_path / "bug.dragoman.jsonl"
    policy = {key: value for key, value in broken.backend.items() if key == "repair"}
    backend = {key: value for key, value in broken.backend.items() if key != "repair"}
    settings: dict[str, Json] = {
        "backends": {"b": backend},
        "models": {"m": {"backend": "b", **policy}},
        "inspector": {"contents": "always"},
    }
    async with running_gateway(settings) as gateway:
        body: dict[str, Json] = {"model": "m", "max_tokens": 99, "messages": [*broken.messages]}
        answer = await gateway.client.post(broken.path, json=body)
        assert answer.status_code == broken.status
        words = ("record", "--last", "--out", str(file), "--redact", "full", "--url", gateway.base_url)
        await asyncio.to_thread(run, *words)
    capsys.readouterr()
    run("explain", str(file))
    said = capsys.readouterr().out.replace(answer.headers["x-request-id"], "ID").splitlines()
    for line in broken.lines:
        assert any(one.startswith(line) for one in said), (line, said)
    # The same cause in the request as its client saved it, without a gateway.
    saved = tmp_path / "request.json"
    saved.write_text(json.dumps(body))
    assert run("lint", str(saved)) == 1
    rule = broken.lines[1].split()[1]
    assert rule in capsys.readouterr().out
