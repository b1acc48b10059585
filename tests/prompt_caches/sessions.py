"""Growing requests of two agents, in the forms that their programs send: Claude Code 2.1.330 and Codex 0.169.

The texts are filled to the size of the real ones: a system prompt of 28,000 characters, 12 tools of 48,000.
"""

from collections.abc import Iterator
from typing import Any, Final

EPHEMERAL: Final = {"cache_control": {"type": "ephemeral"}}
TOOLS: Final = (
    "Agent",
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "Skill",
    "Task",
    "Web",
    "Write",
    "Wait",
)
SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"command": {"type": "string"}}}


def claude_code(rounds: int, calls: int = 1) -> Iterator[dict[str, Any]]:
    """Yields the requests of a session: each later one has the calls of the answer before and their results. The marks
    stand on two blocks of the system prompt and on the last block; the first block changes with each request."""
    reminder = {"type": "text", "text": "<system-reminder>\n# Environment\nA repository.\n</system-reminder>"}
    messages: list[Any] = [{"role": "user", "content": [reminder, {"type": "text", "text": "Run the rounds."}]}]
    tools = [{"name": name, "description": f"{name} " * 600, "input_schema": SCHEMA} for name in TOOLS]
    for number in range(rounds + 1):
        *head, last = messages
        marked = {**last, "content": [*last["content"][:-1], {**last["content"][-1], **EPHEMERAL}]}
        yield {
            "model": "m",
            "max_tokens": 32_000,
            "stream": True,
            "system": [
                {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.330; cch={number:05x}"},
                {"type": "text", "text": "You are a Claude agent.", **EPHEMERAL},
                {"type": "text", "text": "Work toward the goals. " * 1200, **EPHEMERAL},
            ],
            "tools": tools,
            "metadata": {"user_id": '{"device_id": "d", "session_id": "s"}'},
            "messages": [*head, marked],
        }
        used = [
            {"type": "tool_use", "id": f"toolu_{number}_{n}", "name": "Bash", "input": {"command": f"echo {number}"}}
            for n in range(calls)
        ]
        messages.append({"role": "assistant", "content": used})
        results = [{"type": "tool_result", "tool_use_id": one["id"], "content": f"round {number}"} for one in used]
        messages.append({"role": "user", "content": results})


def codex(rounds: int, calls: int = 1) -> Iterator[dict[str, Any]]:
    """Yields the requests of a session, which set no marks. Every tenth answer asks the user, who answers."""
    items: list[Any] = [
        _message("developer", "Permissions. " * 400),
        _message("user", "<environment_context>\nA repository.\n</environment_context>"),
        _message("user", "Run the rounds."),
    ]
    tools = [
        {"type": "function", "name": name, "description": f"{name} " * 600, "parameters": SCHEMA, "strict": False}
        for name in TOOLS
    ]
    for number in range(rounds + 1):
        yield {
            "model": "m",
            "stream": True,
            "store": False,
            "instructions": "Work toward the goals. " * 1200,
            "tools": tools,
            "input": [*items],
            "prompt_cache_key": "s",
        }
        if number % 10 == 9:
            items += [_message("assistant", f"Is round {number} right?"), _message("user", "Yes.")]
            continue
        ids = [f"call_{number}_{n}" for n in range(calls)]
        items += [
            {"type": "function_call", "call_id": one, "name": "Bash", "arguments": f'{{"command":"echo {number}"}}'}
            for one in ids
        ]
        items += [{"type": "function_call_output", "call_id": one, "output": f"round {number}"} for one in ids]


def _message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
