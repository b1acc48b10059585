"""Defines the `dragoman` field of a response: the gateway's own notes about it."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.dialects.usage import UsageNote, usage_note


class Diagnostics(Struct, frozen=True):
    """The gateway's notes about the response."""

    usage: UsageNote | UnsetType = UNSET
    diagnostics: list[Notice] | UnsetType = UNSET


class Unlisted(Struct, frozen=True):
    """The reason why some available models are not in the list."""

    missing: str


def dragoman_field(usage: UsageReport | None, diagnostics: Sequence[Notice] | None) -> dict[str, Json]:
    """`usage`: how reliable the counts are. `diagnostics`: every notice; None unless the client requested them."""
    said: dict[str, Json] = {}
    if usage is not None and (remark := usage_note(usage)):
        said["usage"] = remark
    if diagnostics is not None:
        said["diagnostics"] = [msgspec.to_builtins(notice) for notice in diagnostics]
    return said
