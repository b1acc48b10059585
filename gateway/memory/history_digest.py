"""Identifies a conversation without an id: keyed digests of its turns so far, one behind each atomic group.

A digest stands for exactly the turns before it. So whoever edits, forks or shortens these turns gets another digest,
and what was derived from the former turns no longer applies.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import File, Image, Role, Text, ToolCall, ToolResult, Turn
from gateway.history.classify import system_prefix
from gateway.history.groups import groups

# Changes with the canonical form: a digest of another form matches nothing.
FORM: Final = b"1"
DIGEST_BYTES: Final = 16

# A client may rename `system` to `developer` between two requests.
_ROLES: Final[Mapping[Role, str]] = {"system": "s", "developer": "s", "user": "u", "assistant": "a", "tool": "t"}


class Boundary(msgspec.Struct, frozen=True):
    """The end of an atomic group.

    `turns` counts the turns before it, without the leading system turns; `digest` has 16 bytes and stands for exactly
    these turns. `answered` says that the model's turns are among them, `compacted` that a turn is in which a provider's
    own compaction stands: no summary may cover that one.
    """

    turns: int
    digest: bytes
    answered: bool
    compacted: bool = False


def history_digests(turns: Sequence[Turn], secret: bytes, tenant: str) -> tuple[Boundary, ...]:
    """Returns the boundaries of repaired turns, in order; the last one is the end of the conversation.

    The leading system turns are left out: dates, directories and lists of tools change in them, and they are always
    sent. So is everything that clients change from request to request: ids, reasoning, unknown fields. The digests of
    two tenants, and those under two secrets, have nothing in common.
    """
    behind = turns[system_prefix(turns) :]
    key = hmac.digest(secret, b"\0".join((b"chain", FORM, tenant.encode("utf-8", "surrogatepass"))), "sha256")
    # The hash of all turns so far: a turn names its own lengths, so that no two histories have the same bytes.
    hashed = hashlib.sha256(key)
    ends = {group.stop for group in groups(behind)}
    ordinals: dict[str, int] = {}
    answered = compacted = False
    found: list[Boundary] = []
    for count, turn in enumerate(behind, 1):
        if turn.role == "assistant":
            ordinals = {}
            answered = True
        compacted = compacted or turn.compaction
        hashed.update(_canonical(turn, ordinals))
        if count in ends:
            found.append(Boundary(count, hashed.copy().digest()[:DIGEST_BYTES], answered, compacted))
    return tuple(found)


def root(boundaries: Sequence[Boundary]) -> Boundary | None:
    """Returns the boundary behind the model's first turn, which every continuation of a conversation shares."""
    return next((boundary for boundary in boundaries if boundary.answered), None)


def _canonical(turn: Turn, ordinals: dict[str, int]) -> bytes:
    """Returns the content of a turn, each part with its length. A result names the ordinal of its call, not the id."""
    texts: list[str] = []
    others: list[str] = []
    for block in turn.blocks:
        if type(block) is Text:
            texts.append(block.text)
        elif type(block) is ToolCall:
            ordinals[block.id] = len(ordinals)
            others.append(f"c{len(block.name)},{len(block.arguments)}:{block.name}{block.arguments}")
        elif type(block) is ToolResult:
            text = block.text.rstrip()
            others.append(f"r{ordinals.get(block.call_id, -1)},{len(text)}:{text}")
            others += [_media(part) for part in block.content if type(part) is not Text]
        elif type(block) is Image or type(block) is File:
            others.append(_media(block))
    text = "\n".join(texts).rstrip()
    name = turn.name if turn.role == "user" and turn.name else ""
    head = f"{_ROLES[turn.role]}{len(name)},{len(text)}:{name}{text}"
    return "".join((head, *others)).encode("utf-8", "surrogatepass")


def _media(part: Image | File) -> str:
    if isinstance(part, Image):
        return f"i{len(part.url)}:{part.url}"
    written = json.dumps(part.part, sort_keys=True, separators=(",", ":"))
    return f"f{len(part.kind)},{len(written)}:{part.kind}{written}"
