"""Renaming is one to one, deterministic, and reversed in the response."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.events import Event, TextDelta, ToolCallEnd, ToolCallStart
from gateway.providers.profile import Alphabet
from gateway.providers.registry import PROFILES
from gateway.tool_calls.identifier_map import IdentifierMap, rename

ALPHABETS = st.sampled_from(
    [profile.call_id for profile in PROFILES.values()]
    + [profile.tool_names for profile in PROFILES.values()]
    + [Alphabet(shortest=64), Alphabet("a-z0-9", shortest=30, longest=80), Alphabet("a-f0-9t", first="t", longest=8)]
)


@given(st.lists(st.text(min_size=1, max_size=100), unique=True), ALPHABETS)
def test_renaming_is_one_to_one(identifiers: list[str], alphabet: Alphabet) -> None:
    renamed = rename(identifiers, alphabet)
    sent = [renamed.get(identifier, identifier) for identifier in identifiers]
    assert len(set(sent)) == len(identifiers)
    assert rename(identifiers, alphabet) == renamed
    assert rename(sent, alphabet) == {}


def test_what_fits_keeps_its_name() -> None:
    assert rename(["call_1", "functions.f:0"], Alphabet()) == {}


def test_a_readable_beginning_is_kept() -> None:
    (sent,) = rename(["mcp server/read file"], PROFILES["openai"].tool_names).values()
    assert sent.startswith("mcp_server_read_file_")


def test_the_answer_carries_the_clients_names() -> None:
    identifiers = IdentifierMap({"own id": "sent"}, {"own.name": "sent_name"})
    events = identifiers.restore([ToolCallStart(0, "sent", "sent_name"), ToolCallEnd(0)])
    assert events == [ToolCallStart(0, "own id", "own.name"), ToolCallEnd(0)]


def test_text_passes_without_a_look_at_the_names() -> None:
    events: list[Event] = [TextDelta("x")]
    assert IdentifierMap({"a": "b"}).restore(events) is events


def test_names_nobody_renamed_pass() -> None:
    events = [ToolCallStart(0, "new", "other")]
    assert IdentifierMap({"a": "b"}, {"c": "d"}).restore(list(events)) == events
