"""Defines the adapter's own keys of a backend entry in settings.json: schema, carrier, and the mapping."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from adapters.proto.backend.token_counts import CountsMode
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.events import Reason
from gateway.tool_calls.parsers.formats import DEFAULT_FORMAT

# "set": the field has a value; "unset": it has none; otherwise the value that it has. An enum's value is its name.
Conditions: TypeAlias = Mapping[str, bool | int | str]
Mode: TypeAlias = Literal["delta", "total"]


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The output of this name, in an answer of KServe's form."""

    tensor: str


Path: TypeAlias = str | Tensor
# A count is the value at one path, or the sum of the values at several.
Count: TypeAlias = str | Tensor | tuple[Path, ...]


class CallRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where tool calls stand. Paths are below `each`, a repeated field; without it, the message has one call.

    `mode`: a call is `whole`, or its arguments come as pieces (`delta`) or as the text so far (`total`); pieces belong
    to the call with their `index`, else with their `id`.
    """

    name: Path
    arguments: Path
    each: str | None = None
    when: Conditions = {}
    id: Path | None = None
    index: Path | None = None
    mode: Literal["whole", "delta", "total"] = "whole"


class FinishRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the end of the response is found: by the value of a field (`at`), by the member of a oneof that is set, or by
    conditions alone (`when`, `reason`). `none` are values that mean "not yet", `failures` those of a failed response. A
    number stands for a value of an enum that the schema lacks.
    """

    at: Path | None = None
    oneof: str | None = None
    when: Conditions = {}
    reason: Reason | None = None
    reasons: Mapping[str, Reason] = {}
    none: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class UsageRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where token counts stand, and how those of several messages combine. `answer` in place of `completion`: the
    backend counts the reasoning apart."""

    prompt: Count | None = None
    completion: Count | None = None
    total: Count | None = None
    reasoning: Count | None = None
    cached: Count | None = None
    answer: Count | None = None
    mode: CountsMode = "last"


class ErrorRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message that reports a failure: its conditions, its text and its code. `status` is the status of HTTP or gRPC
    that it stands for, or the path at which it names one."""

    when: Conditions
    message: Path | None = None
    code: Path | None = None
    status: int | Path | None = None


class StartRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the backend's id of the response and its name of the model stand."""

    id: Path | None = None
    model: Path | None = None


class OpaqueRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where state stands that only the backend can read and that must return to it, and what it belongs to. `mode`: a
    state is `whole`, or that of the reasoning comes in pieces (`delta`)."""

    at: Path
    on: Literal["call", "reasoning"]
    mode: Literal["whole", "delta"] = "whole"


class StateName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a client keeps opaque state: in `extra_content`, in this field below the name of the provider."""

    provider: str
    field: str = "opaque"


class ReadRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule for every message of the response, or for every item of the repeated field `each` (with `rules`: for
    these rules in order). It applies where all conditions of `when` hold. `mode` is that of the text and reasoning.
    `choice` is the number of a choice, of which the rule reads the first, 0.
    The other keys read the message or the item, or the JSON document in its field `json`, which with `openai` is a
    chunk or a whole response of OpenAI's chat completions. `hidden`: while it is true, the text is no part of the
    response. `stopped_by`: the stop sequence that was met."""

    each: str | None = None
    rules: tuple["ReadRule", ...] = ()
    when: Conditions = {}
    choice: Path | None = None
    json: str | None = None
    openai: bool = False
    text: Path | None = None
    hidden: Path | None = None
    reasoning: Path | None = None
    mode: Mode = "delta"
    call: CallRule | None = None
    finish: FinishRule | None = None
    usage: UsageRule | None = None
    error: ErrorRule | None = None
    start: StartRule | None = None
    stopped_by: Path | None = None
    opaque: OpaqueRule | None = None


class ProtoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A protobuf backend (docs/proto-backends.md).

    `preset` names the entry of `presets` whose keys are the defaults of the others.

    `schema` names its files. `carrier`: how HTTP holds the messages. `method` is `package.Service/Method`, and `path`
    replaces its path. `request` is the template of the request's message, `read` the rules for those of the response.
    `metadata` are headers of the request, in which `$model` and `$request_id` may stand. `state` names opaque state for
    the client; by default the service is the provider. `ends`: what completes a response: a `finish` rule, the `status`
    of the carrier, or the `close` of the body. `max_stops` and `max_tokens` are as for text wires. The other keys are
    those of the text adapter, for a template with `$prompt` or `$transcript`.
    """

    presets: ClassVar[str] = "adapters.proto.presets"

    schema: DescriptorSet
    carrier: str
    method: str
    request: Mapping[str, Any]
    read: tuple[ReadRule, ...]
    preset: str | None = None
    path: str | None = None
    metadata: Mapping[str, str] = {}
    state: StateName | None = None
    ends: Literal["finish", "status", "close"] = "finish"
    max_stops: int | None = None
    max_tokens: int | None = None
    tool_format: str = DEFAULT_FORMAT
    force_tools: Literal["constrain", "prompt"] = "constrain"
    turn_stops: bool = True
    turn_guard: bool = True
    prose_calls: bool = True
    thinking: Literal["tagged", "opened", "text"] = "tagged"
