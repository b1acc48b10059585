"""The table of profiles in docs/providers.md is made of the profiles."""

from collections.abc import Iterator
from typing import Final

import pytest

from gateway.providers.profile import Alphabet, Profile
from gateway.providers.registry import PROFILES
from tests.paths import ROOT

PAGE: Final = ROOT / "docs" / "providers.md"
COLUMNS: Final = (
    *("profile", "call ids", "function names", "arguments", "content", "tool message"),
    *("reasoning of earlier turns", "order"),
)


def _row(name: str, profile: Profile) -> str:
    cells = (
        f"`{name}`",
        "never rewritten, reused ones neither" if profile.reused_ids == "keep" else _identifiers(profile.call_id),
        _identifiers(profile.tool_names),
        "object" if profile.arguments == "object" or _is_of_messages(profile) else "text",
        _content(profile),
        _tool_message(profile),
        _reasoning(profile),
        ", ".join(_order(profile)) or "free",
    )
    return f"| {' | '.join(cells)} |"


def _is_of_messages(profile: Profile) -> bool:
    """Whether the profile is one of the Messages API alone, whose wire has calls as objects."""
    return profile.messages is not None and profile.request_rules is None


def _identifiers(alphabet: Alphabet) -> str:
    if alphabet.shortest > 1:
        assert alphabet.shortest == alphabet.longest
        return f"{alphabet.longest} of `[{alphabet.characters}]`"
    first = f"`[{alphabet.first}]`, then " if alphabet.first else ""
    letters = f"{first}`[{alphabet.characters}]`" if alphabet.characters else ""
    longest = f"up to {alphabet.longest}{'' if letters else ' characters'}" if alphabet.longest else ""
    return ", ".join(part for part in (letters, longest) if part) or "any"


def _content(profile: Profile) -> str:
    if profile.content == "string":
        return "one text in every role"
    if profile.tool_content == "string":
        return "results as one text"
    if profile.messages is not None and profile.messages.blank_text == "drop":
        return "no blank text"
    return "any" if profile.empty_text is None else "no empty text"


def _tool_message(profile: Profile) -> str:
    derived = f"`{profile.tool_name_field}` derived from the call"
    return {"keep": "as it came", "drop": "no name", "derive": derived}[profile.tool_name]


def _reasoning(profile: Profile) -> str:
    if profile.messages is not None and profile.messages.thinking != "any":
        return "only with a signature"
    required = {
        "echo_all_tool_turns": "required beside every call",
        "echo_in_tool_loop": "required in the running tool loop",
    }
    sent = {"drop": "dropped", **required}.get(profile.reasoning, "")
    field = f"field `{profile.reasoning_field}`" if profile.reasoning_field else ""
    return "; ".join(part for part in (field, sent, _state(profile)) if part) or "as it came"


def _state(profile: Profile) -> str:
    state = profile.state
    if state is None or profile.reasoning.startswith("echo"):
        return ""
    if state.calls:
        return "signatures of calls kept"
    kept = ", ".join(f"`{name}`" for name in state.fields)
    return f"kept ({kept})" if kept else "kept in the running tool loop"


def _order(profile: Profile) -> Iterator[str]:
    if profile.developer == "system":
        yield "`system` for `developer`"
    if profile.system == "first":
        yield "one leading system message"
    if profile.first_turn == "user":
        yield "the user first"
    if profile.last_turn == "user":
        yield "the assistant never last"
    if profile.alternation == "strict":
        yield "strict alternation"
    if profile.user_after_tool == "bridge":
        yield "an assistant message between results and user"


TABLE: Final = "\n".join(
    [
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(_row(name, profile) for name, profile in PROFILES.items()),
    ]
)


def test_the_table_of_the_page_is_that_of_the_profiles(rewrite_golden: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, mark, rest = page.partition("<!-- profiles -->\n")
    assert mark
    if rewrite_golden:
        _, end, after = rest.partition("<!-- end -->")
        PAGE.write_text(f"{before}{mark}{TABLE}\n{end}{after}", encoding="utf-8")
        pytest.skip("the page is written")
    assert rest.partition("\n<!-- end -->")[0] == TABLE
