"""Removes or replaces the content of a conversation that the backend does not support.

Content that a declaration leaves out never reaches the adapter, so that no adapter needs code for it: it is refused,
written as text, or left out with a notice. (This does not apply to a backend that receives every field unchanged.)
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gateway.adapter import Capabilities
from gateway.core.call_arguments import is_custom_tool
from gateway.core.conversation import (
    EMPTY,
    Block,
    Conversation,
    File,
    Image,
    JsonObject,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
    derived_of,
    has_parts,
    is_system,
    item_of,
    keep_derived,
)
from gateway.core.data_url import held_data, is_data_url, read_image
from gateway.core.errors import IMAGE_REFUSED, Unsupported
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import STATE_FIELD
from gateway.history.apply_profile.tool_turns import tool_turns_as_text
from gateway.providers.cache_rules import MARKS
from gateway.providers.profile import NEUTRAL, Profile

_AS_TEXT: Final = msgspec.structs.replace(NEUTRAL, tool_turns="text")
_LONGEST_KIND: Final = 32
# The name by which an adapter declares that the backend learns which results are failures.
FAILED: Final = "is_error"


def replace_shown(
    conversation: Conversation, repaired: Sequence[Turn], capabilities: Capabilities, policy: Policy
) -> tuple[Conversation, list[Notice]]:
    """Replaces unsupported parts by `[kind]` where the policy refuses them but no turn asks with them: in results, and
    in user turns behind results. A refusal would end the job that the model has begun, because the part stays in the
    history.

    `repaired` are the turns before any was left out, as only they show what stands behind results. Comes before the
    profile, which may join a turn that asks with one that does not.
    """
    if policy.images != "refuse" or not _has_parts(conversation):
        return conversation, []
    shown = _behind_results(repaired)
    notices: list[Notice] = []
    placeholder = msgspec.structs.replace(policy, images="placeholder")
    profile = policy.profile
    # The profile gives what a result shows to the user, or replaces it itself.
    if profile.tool_turns == "text" or (profile.result_media != "keep" and not capabilities.result_media):
        capabilities = msgspec.structs.replace(capabilities, image_roles=capabilities.image_roles | {"tool"})
    turns = tuple(
        [
            _supported(turn, n, (capabilities, placeholder, conversation.paths), notices)
            if has_parts(turn)
            and (turn.role == "tool" or (turn.role == "user" and (turn.synthesized or turn.index in shown)))
            else turn
            for n, turn in enumerate(conversation.turns)
        ]
    )
    return (msgspec.structs.replace(conversation, turns=turns) if notices else conversation), notices


def _behind_results(turns: Sequence[Turn]) -> set[int | None]:
    """Returns the indexes of the user turns that only other user turns and system turns separate from results."""
    found: set[int | None] = set()
    behind = False
    for turn in turns:
        if turn.role == "user":
            if behind:
                found.add(turn.index)
        elif not is_system(turn):
            behind = turn.role == "tool"
    return found


def _has_parts(conversation: Conversation) -> bool:
    return any(map(has_parts, conversation.turns))


def keep_to(
    conversation: Conversation, capabilities: Capabilities, policy: Policy
) -> tuple[Conversation, list[Notice]]:
    """Replaces unsupported parts by `[kind]`, if the policy allows it, and unsupported calls and results by text.

    Calls and results become text where the backend supports neither calls nor transcripts. Raises Unsupported, which
    names the part, if the policy does not allow the replacement.
    """
    notices: list[Notice] = []
    turns = conversation.turns
    if _has_parts(conversation):
        paths = conversation.paths
        turns = tuple(
            [
                _supported(turn, n, (capabilities, policy, paths), notices) if has_parts(turn) else turn
                for n, turn in enumerate(turns)
            ]
        )
    if not (capabilities.tools or capabilities.text_only):
        turns = tool_turns_as_text(turns, _AS_TEXT, notices)
    if turns is not conversation.turns:
        conversation = msgspec.structs.replace(conversation, turns=turns)
    return conversation, notices


def _supported(
    turn: Turn, position: int, rules: tuple[Capabilities, Policy, FieldPaths], notices: list[Notice]
) -> Turn:
    """Returns the turn with supported parts only. One that several requests have keeps it."""
    known = derived_of(turn)
    if known is None or turn.index is None:
        return _Parts(turn, position, *rules, notices).kept()
    # The two that ask for it do so with different rules.
    place = (_SUPPORTED, rules[1].images)
    found = known.get(place)
    if found is None or found[0] != rules:
        of_turn: list[Notice] = []
        supported = _Parts(turn, position, *rules, of_turn).kept()
        found = known[place] = (rules, None if supported is turn else supported, of_turn)
        keep_derived(supported)
    notices += found[2]
    return found[1] or turn


# Under which name a turn with supported parts only is kept.
_SUPPORTED: Final = "supported"


class _Parts:
    """The parts of one turn."""

    def __init__(
        self,
        turn: Turn,
        position: int,
        capabilities: Capabilities,
        policy: Policy,
        paths: FieldPaths,
        notices: list[Notice],
    ) -> None:
        self._turn = turn
        self._index = position if turn.index is None else turn.index
        self._capabilities = capabilities
        self._policy = policy
        self._paths = paths
        self._notices = notices

    def kept(self) -> Turn:
        """Returns the turn with supported parts only; the same turn if nothing had to change."""
        blocks = tuple([self._block(block, place) for place, block in enumerate(self._turn.blocks)])
        return self._turn if blocks == self._turn.blocks else self._turn.changed(*blocks)

    def _block(self, block: Block, place: int) -> Block:
        if not isinstance(block, ToolResult | Image | File):
            return block
        item = item_of(block, place)
        if isinstance(block, ToolResult):
            template = self._paths.result_part
            content = tuple(
                [
                    part if isinstance(part, Text) else self._part(part, template, item, item_of(part, inner))
                    for inner, part in enumerate(block.content)
                ]
            )
            return msgspec.structs.replace(block, content=content)
        return self._part(block, self._paths.part, item)

    def _part(self, part: Image | File, template: str, item: int, inner: int = 0) -> Text | Image | File:
        lack = lack_of(part, self._turn.role, self._capabilities, self._policy.profile)
        if lack is None:
            return self._readable(part, template.format(turn=self._index, item=item, part=inner))
        if self._policy.images == "refuse":
            param = template.format(turn=self._index, item=item, part=inner)
            raise Unsupported(
                f"{param} is not supported: this model's backend {lack}.", param=param, extra={"rule": IMAGE_REFUSED}
            )
        kind = "image" if isinstance(part, Image) else _kind(part)
        detail = f"a part of kind {kind} was replaced by the placeholder [{kind}]"
        self._notices.append(Notice("encode", "changed", "PART_NOT_SENT", detail, index=self._index, level="warning"))
        return Text(f"[{kind}]")

    def _unsent(self, name: str, detail: str) -> Notice:
        return Notice("encode", "dropped", "FIELD_NOT_SENT", detail, index=self._index, level="debug", fields=(name,))

    def _readable(self, part: Image | File, param: str) -> Image | File:
        """Returns the part with its `data:` URL in the one form that every API reads, and a file without the words of
        its client. Raises InvalidRequest for an image that holds none."""
        if isinstance(part, File):
            held = held_data(part.url)
            for mark in MARKS:
                if part.part.get(mark) is not None:
                    detail = f"{mark} of a {_kind(part)} is not sent: it is written anew"
                    self._notices.append(self._unsent(mark, detail))
            return File(part.kind, EMPTY, part.item, part.url if held is None else str(held), part.name)
        if not is_data_url(part.url):
            return part
        url = str(read_image(part.url, param))
        return part if url == part.url else msgspec.structs.replace(part, url=url)


def lack_of(part: Image | File, role: Role, capabilities: Capabilities, profile: Profile) -> str | None:
    """Returns why the backend does not support the part in a message of this role; None: it does."""
    match part:
        case File():
            return None if _takes_file(part, role, capabilities, profile) else f"does not accept {_kind(part)} parts"
        case Image():
            if not capabilities.images:
                return "does not accept images"
            if role not in capabilities.image_roles:
                return f"does not accept images in {role} messages"
            if not capabilities.remote_images and not is_data_url(part.url):
                return "cannot fetch an image; send it as a data: URL"
            return None


def _takes_file(part: File, role: Role, capabilities: Capabilities, profile: Profile) -> bool:
    types = capabilities.files if profile.files is None else frozenset(profile.files)
    if role not in capabilities.file_roles or not types:
        return False
    if is_data_url(part.url):
        held = held_data(part.url)
        return held is not None and held.media_type in types
    return bool(part.url) and capabilities.remote_files


def _kind(part: File) -> str:
    """Returns the part's type where it is a plain word: the client may send any text there."""
    kind = part.kind
    return kind if kind.isascii() and kind.replace("_", "").isalnum() and len(kind) <= _LONGEST_KIND else "file"


class FurtherFields(msgspec.Struct, frozen=True):
    """The names of the fields of messages and of tools that are not those of the protocol, each as often as it
    occurs."""

    messages: list[str]
    tools: list[str]


def further_fields(conversation: Conversation) -> FurtherFields:
    """Returns the names of the further fields of all messages and tools."""
    names: list[str] = []
    for turn in conversation.turns:
        if turn.extra:
            names += _named(turn.extra)
        for block in turn.blocks:
            if type(block) is ToolResult:
                for part in block.content:
                    if type(part) is not File and part.extra:
                        names += _own(part)
                if block.is_error and _failed(block):
                    names.append(FAILED)
            elif type(block) is not File and block.extra:
                names += _own(block)
    tools = [tool for tool in conversation.tools if tool.extra or tool.strict is not None]
    return FurtherFields(names, [name for tool in tools for name in _tool_fields(tool)])


def dropped_fields(
    conversation: Conversation, capabilities: Capabilities, fields: FurtherFields | None = None, carried: str = ""
) -> list[Notice]:
    """One notice for all messages and one for all tools, with the names of the fields that nothing carries to the
    backend, and how often they occur. `fields` are those of the conversation, and `carried` is a further one that
    reaches the backend."""
    if fields is None:
        fields = further_fields(conversation)
    own = () if conversation.keeps is None else conversation.keeps.fields
    kept = {*capabilities.carries, carried}
    messages = Counter([name for name in fields.messages if name not in kept and name not in own])
    tools = Counter([name for name in fields.tools if name not in kept])
    param = conversation.paths.param
    # A function is not strict without the field, either.
    loose = "strict" in tools and not any([tool.strict for tool in conversation.tools])
    return [*_notice(param("messages"), messages), *_notice(param("tools"), tools, "strict" if loose else "")]


def _failed(result: ToolResult) -> bool:
    """Returns whether the client says that a call failed."""
    return result.is_error and not result.synthesized


def _own(block: Text | Reasoning | Image | ToolCall) -> list[str]:
    """The fields beside what the gateway reads itself. The type of a text only says that it is a refusal, that of a
    call that it is one of a custom tool."""
    known = ("type", "custom") if isinstance(block, ToolCall) else ("type",) if isinstance(block, Text) else ()
    return [name for name in _named(block.extra) if name not in known]


def _named(extra: JsonObject) -> Iterator[str]:
    """Yields the names of the fields, and of a field with state one for each provider: `extra_content.google`."""
    for name, value in extra.items():
        if name == STATE_FIELD and isinstance(value, Mapping):
            yield from (f"{name}.{provider}" for provider in value)
        else:
            yield name


def _tool_fields(tool: ToolSpec) -> Iterator[str]:
    function = tool.extra.get("function")
    names = [*tool.extra, *(function if isinstance(function, dict) else ())]
    if tool.strict is not None:
        names.append("strict")
    known = ("type", "custom") if is_custom_tool(tool) else ("function",)
    yield from (name for name in names if name not in known)


def _notice(where: str, counts: Counter[str], harmless: str = "") -> list[Notice]:
    """Returns the notice of fields that have no place, if any; of the `harmless` one nothing is lost."""
    if not counts:
        return []
    ordered = sorted(counts.items())
    names = ", ".join([f"{name[:40]} ({count})" for name, count in ordered])
    detail = f"the backend has no field for {names} of {where}"
    fields = (*[name[:40] for name, _ in ordered if name != harmless],)
    return [Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=fields)]
