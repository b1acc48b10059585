"""Gives the words of the pages about rules and error codes, which the package holds without the pages."""

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files

import msgspec

from gateway.core.errors import InvalidRequest


class RuleText(msgspec.Struct, frozen=True):
    """The meaning of a rule, in plain text."""

    rule: str
    text: str


class ErrorText(msgspec.Struct, frozen=True):
    """Why the gateway answers with a code, and what to do about it."""

    cause: str = ""
    remedy: str = ""


def rule_text(rule: str) -> RuleText:
    """Returns the text of docs/rules.md or docs/notices.md about a rule. Raises InvalidRequest for an unknown one."""
    text = _rule_texts().get(rule)
    if text is None:
        raise InvalidRequest(f"There is no rule {rule[:64]!r}.", status=404, code="unknown_rule")
    return RuleText(rule, text)


def error_text(code: str) -> ErrorText:
    """Returns the row of docs/errors.md about a code; an empty one for a code that is the backend's own."""
    return _error_texts().get(code, ErrorText())


def error_codes() -> Collection[str]:
    """Returns the codes of docs/errors.md: those of the gateway."""
    return _error_texts().keys()


@cache
def _rule_texts() -> Mapping[str, str]:
    return msgspec.json.decode(_file("rule_texts.json"), type=dict[str, str])


@cache
def _error_texts() -> Mapping[str, ErrorText]:
    return msgspec.json.decode(_file("error_texts.json"), type=dict[str, ErrorText])


def _file(name: str) -> bytes:
    return (files("gateway.inspector") / name).read_bytes()
