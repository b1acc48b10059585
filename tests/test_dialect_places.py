"""Only the wire, the demo backends, the registry, recordings and discovery know a format's words."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT

# The words that no other format has, its name among them.
WORDS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "openai_chat": re.compile(rb"openai_chat|chat\.completion|chatcmpl"),
    "openai_responses": re.compile(rb"openai_responses|output_item\.added"),
    "openai_completions": re.compile(rb"openai_completions|text_completion\b|\bcmpl-"),
    "ollama": re.compile(rb"adapters\.ollama|done_reason|eval_count|/api/(?:chat|generate|tags|show)"),
    "gemini_interactions": re.compile(rb"gemini_interactions|model_output|thought_summary|step\.delta"),
    "gemini": re.compile(rb"adapters\.gemini\.client|enerateContent|finishReason|usageMetadata|functionResponse"),
    "anthropic_messages": re.compile(rb"anthropic_messages|anthropic-version|content_block|message_start"),
}
# A redacted recording keeps the words of every format, so that it still shows the same fault, and the headers that
# choose a version of one.
RECORDINGS: Final = "gateway/recording/"
# The first settings of a server or a provider name its adapter.
DISCOVERY: Final = ("gateway/discovery/", "gateway/providers/")
# What clients of other APIs send to the route of chat completions is read by the readers of those APIs.
FOREIGN: Final = ("adapters/openai_chat/client/foreign_forms.py",)
# A text backend may be an Ollama, too, and a protobuf message may hold OpenAI's JSON. The doctor looks at the bytes of
# the wire whose servers differ most.
OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "openai_responses": FOREIGN,
    # The successor of the API has its words and errors.
    "gemini": ("adapters/gemini_interactions/",),
    # The state in an event that a client of the same API gets as it is has a label, too.
    # Only clients of this API return thinking, of which Anthropic demands a signature.
    "anthropic_messages": (*FOREIGN, "gateway/response/provider_state.py", "gateway/capabilities/refused_history.py"),
    "ollama": ("adapters/text/backend/presets.py",),
    "openai_chat": (
        "adapters/proto/backend/openai_json.py",
        "gateway/diagnostics/doctor/",
        "gateway/commands/doctor_offline.py",
    ),
}


def _places(dialect: str) -> tuple[str, ...]:
    """The places that may know the format."""
    return (
        f"adapters/{dialect}/",
        *OTHERS.get(dialect, ()),
        "gateway/demo/",
        "gateway/registry.py",
        # Old paths, and who may import which wire.
        "gateway/moved.py",
        "gateway/testing/layering.py",
        RECORDINGS,
        *DISCOVERY,
    )


def _found(root: Path, words: re.Pattern[bytes]) -> dict[str, list[bytes]]:
    files = [path for package in ("gateway", "adapters") for path in sorted((root / package).rglob("*.py*"))]
    sources = {str(path.relative_to(root)): path.read_bytes() for path in files if path.suffix in (".py", ".pyi")}
    return {name: found for name, source in sources.items() if (found := words.findall(source))}


@pytest.mark.parametrize("dialect", WORDS)
def test_no_other_place_knows_a_format_by_name(dialect: str) -> None:
    found = _found(ROOT, WORDS[dialect])
    assert {name: words for name, words in found.items() if not name.startswith(_places(dialect))} == {}
    known = {place for place in _places(dialect) if any(name.startswith(place) for name in found)}
    assert known >= {f"adapters/{dialect}/", "gateway/registry.py"}
