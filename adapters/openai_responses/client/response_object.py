"""Builds the response object: its state, and the request's fields that it repeats."""

from collections.abc import Mapping
from typing import Final

from adapters.openai_responses.client.errors import failure
from adapters.openai_responses.client.output_items import ItemStatus
from adapters.openai_responses.client.stored_answer import response_id
from adapters.openai_responses.table import INCOMPLETE
from adapters.openai_responses.usage import usage_object
from gateway.core.answer import merge_usage
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.core.events import STEERED, Finish, UsageReport
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead
from gateway.dialects.dragoman_field import dragoman_field

# All fields of the object in the published schema of Open Responses, with their values where the request has none.
_REPEATED: Final[Mapping[str, Json]] = {
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": {"effort": None, "summary": None},
    "max_output_tokens": None,
    "max_tool_calls": None,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}
# Fields of a function that a request may leave out.
_FUNCTION: Final[Mapping[str, Json]] = {"description": None, "parameters": None, "strict": None}
# Objects in which the request may leave fields out.
_COMPLETED: Final = ("text", "reasoning")
_STATE: Final[Mapping[str, Json]] = {
    "completed_at": None,
    "incomplete_details": None,
    "error": None,
    "output": [],
    "usage": None,
}


class GrowingResponse:
    """The response object as far as it is known: `begun` when the answer begins, `complete` or `failed` when it ends.

    `asked` are the fields of the request. `output` holds the items that are done, by their index, `notices` those for a
    client that asks for them.
    """

    def __init__(self, head: AnswerHead, asked: JsonObject) -> None:
        self._base = _base(head, asked)
        self._clock = head.clock
        self.output: dict[int, Json] = {}
        self._fields: dict[str, Json] = {}
        self._own_usage: JsonObject = EMPTY
        self.notices: list[Notice] = []
        self._diagnostics = head.diagnostics
        # Why the answer is incomplete; None: it is complete.
        self._why: str | None = None
        self._completed_at: int | None = None
        self._usage: UsageReport | None = None

    @property
    def begun(self) -> dict[str, Json]:
        """Returns the object of an answer that has no end yet."""
        return {**self._base, **self._fields}

    def add_fields(self, fields: JsonObject) -> None:
        """Adds what a backend of the same dialect says of its response. Its null stands for no value of the request."""
        for name, value in fields.items():
            if name == "usage":
                self._own_usage = value if isinstance(value, dict) else EMPTY
            elif value is not None or name not in self._base:
                self._fields[name] = value

    @property
    def status(self) -> ItemStatus:
        """Returns the status of the answer, and of an item that ends with it."""
        return "completed" if self._why is None else "incomplete"

    def finish(self, finish: Finish) -> None:
        """Sets the finish reason. An answer that was steered behind its calls is complete: its client runs them."""
        steered = finish.raw == STEERED and finish.reason == "stop"
        self._why = "steered" if steered else INCOMPLETE.words.get(finish.reason)
        self._completed_at = self._clock()

    def add_usage(self, usage: UsageReport) -> None:
        """Adds a report of token counts."""
        self._usage = merge_usage(self._usage, usage)

    def deny(self, notice: Notice) -> None:
        """The response is not stored."""
        self._base["store"] = False
        self.notices.append(notice)

    def complete(self) -> dict[str, Json]:
        """Returns the object of the complete answer."""
        said: dict[str, Json] = {"status": self.status, "output": self._items()}
        if self._why is None:
            said["completed_at"] = self._completed_at
        else:
            said["incomplete_details"] = self._fields.get("incomplete_details") or {"reason": self._why}
        if self._usage is not None:
            said["usage"] = usage_object(self._usage, self._own_usage)
        if noted := dragoman_field(self._usage, self.notices if self._diagnostics else None):
            said["dragoman"] = noted
        return {**self.begun, **said}

    def failed(self, error: GatewayError) -> dict[str, Json]:
        """Returns the object of an answer that failed, with the items that were done before. It is not stored."""
        said: dict[str, Json] = {"status": "failed", "error": failure(error), "output": self._items(), "store": False}
        return {**self.begun, **said}

    def _items(self) -> list[Json]:
        return [self.output[index] for index in sorted(self.output)]


def _base(head: AnswerHead, asked: JsonObject) -> dict[str, Json]:
    """Returns the object of an answer that has just begun."""
    repeated = {name: default if (value := asked.get(name)) is None else value for name, default in _REPEATED.items()}
    for name in _COMPLETED:
        value, default = repeated[name], _REPEATED[name]
        if isinstance(value, dict) and isinstance(default, dict):
            repeated[name] = default | {key: field for key, field in value.items() if field is not None}
    if isinstance(tools := repeated["tools"], list):
        repeated["tools"] = [_completed_tool(tool) for tool in tools]
    return {
        "id": response_id(head.unique),
        "object": "response",
        "created_at": head.created,
        "status": "in_progress",
        "model": head.model,
        **_STATE,
        **repeated,
        "previous_response_id": asked.get("previous_response_id"),
        "store": head.stored,
        "background": False,
    }


def _completed_tool(tool: Json) -> Json:
    """Returns a tool with all fields that the schema demands; only functions are in it."""
    return {**tool, **_FUNCTION, **tool} if isinstance(tool, dict) and tool.get("type") == "function" else tool
