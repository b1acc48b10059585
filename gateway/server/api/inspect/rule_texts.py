"""Gives the text of docs/rules.md or docs/notices.md about a rule, which the package holds without the pages."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from gateway.core.errors import InvalidRequest


class RuleText(msgspec.Struct, frozen=True):
    """What a rule means, in plain text."""

    rule: str
    text: str


def rule_text(rule: str) -> RuleText:
    """Returns the text about a rule. Raises InvalidRequest for an unknown one."""
    text = _texts().get(rule)
    if text is None:
        raise InvalidRequest(f"There is no rule {rule[:64]!r}.", status=404, code="unknown_rule")
    return RuleText(rule, text)


@cache
def _texts() -> Mapping[str, str]:
    content = (files("gateway.server.api.inspect") / "rule_texts.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, str])
