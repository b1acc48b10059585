"""The tables of the wires: what is written is read back, each field has one row, and the pages have the rows."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.gemini import finish as gemini_finish
from adapters.gemini import table as gemini
from adapters.gemini import usage as gemini_usage
from gateway.adapter import Adapter
from gateway.core.conversation import ChoiceWord, Conversation, Json, NamedTool, Role, Sampling, Text, ToolSpec, Turn
from gateway.core.events import Finish, Reason, UsageReport
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.registry import load_adapters, load_dialect
from gateway.settings import parse_settings
from gateway.wires.table import Parameter, RequestTable, Words, reported
from tests.paths import ROOT

PAGES: Final = ROOT / "docs" / "dialects"
HEADER: Final = "| field | handling | how |\n| --- | --- | --- |\n"
TABLES: Final[Mapping[str, RequestTable]] = {"gemini": gemini.TABLE}
# The wires that are spoken on both sides.
BOTH: Final = tuple(name for name in TABLES if name not in ("ollama", "openai_completions"))
WORDS: Final[Mapping[str, tuple[Words[Any], frozenset[str]]]] = {
    "gemini.modes": (gemini.MODES, frozenset(get_args(ChoiceWord))),
    "gemini.roles": (gemini.ROLES, frozenset(get_args(Role)) - {"system", "developer"}),
    "gemini.reasons": (gemini_finish.REASONS, frozenset(get_args(Reason))),
    "gemini.tiers": (gemini.TIERS, frozenset({"default", "flex", "priority"})),
}

tables = pytest.mark.parametrize("name", TABLES)


@tables
def test_the_page_has_the_rows_of_the_table(name: str, rewrite_golden: bool) -> None:
    page = PAGES / f"{name}.md"
    before, header, rest = page.read_text(encoding="utf-8").partition(HEADER)
    written, behind = rest.partition("\n\n")[::2]
    rows = "\n".join(TABLES[name].docs_rows())
    if rewrite_golden:
        page.write_text(f"{before}{header}{rows}\n\n{behind}", encoding="utf-8", newline="\n")
    else:
        assert written == rows


@tables
def test_a_further_row_is_all_that_a_further_parameter_needs(name: str) -> None:
    kind = TABLES[name].kind
    row = Annotated[float | None, Parameter("novelty", "of the answer")]
    table = RequestTable(msgspec.defstruct("More", [("novelty", row, None)], bases=(kind,), frozen=True, kw_only=True))
    assert "novelty" not in TABLES[name].supported | TABLES[name].names
    fields = {field: "m" if field == "model" else None for field in kind.__struct_encode_fields__}
    read = table.sections[""].read(msgspec.convert({**fields, "novelty": 0.5}, table.kind))
    assert read["novelty"] == 0.5
    assert table.sections[""].write(Conversation((), params={"novelty": 0.5}))["novelty"] == 0.5
    assert table.paths["novelty"] == "novelty"
    assert {"novelty"} == table.supported - TABLES[name].supported == table.names - TABLES[name].names
    assert "| `novelty` | honoured | of the answer |" in table.docs_rows()


def test_a_field_without_a_row_is_no_table() -> None:
    kind = msgspec.defstruct("Lacking", [("novelty", float | None, None)])
    with pytest.raises(TypeError, match=r"Lacking\.novelty has no Parameter"):
        RequestTable(kind)


def test_a_row_beside_the_type_is_written_and_reported() -> None:
    kind = msgspec.defstruct("Lacking", [("model", Annotated[str | None, Parameter("model")], None)])
    table = RequestTable(kind, {"tier": Parameter("service_tier"), "edits": reported(None)})
    assert table.sections[""].write(Conversation((), params={"service_tier": "flex"})) == {"tier": "flex"}
    assert [*table.sections[""].unsent({"model": "m", "tier": 1, "edits": 2, "news": 3})] == ["edits", "news"]
    assert table.docs_rows() == ("| `model` | honoured | |", "| `tier` | honoured | |")


@pytest.mark.parametrize("name", WORDS)
def test_each_word_that_is_written_is_read_back(name: str) -> None:
    words, values = WORDS[name]
    assert words.words.keys() == values
    own = set(words.values.values())
    assert [value for value in own if words.values[words.words[value]] != value] == []
    # A value without a word of its own has the nearest one, which the wire knows.
    assert [value for value in values - own if words.words[value] not in words.values] == []


FUNCTION: Final = ToolSpec("look", "", {"type": "object", "properties": {}})
LIMITS: Final = st.integers(64, 2**31 - 1)
SHARE: Final = st.floats(0, 1, allow_nan=False, width=16)
SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {"a": {"type": "string"}}}
# What clients of any API may ask for, by canonical names. Values that a wire cannot have are among them.
ASKED: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "frequency_penalty": SHARE,
    "max_tokens": LIMITS,
    "presence_penalty": SHARE,
    "reasoning_effort": st.sampled_from(("none", "minimal", "low", "medium", "high", "xhigh", "max", "novel")),
    "response_format": st.sampled_from(
        (
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        )
    ),
    "seed": st.integers(0, 2**31 - 1),
    "service_tier": st.sampled_from(("default", "flex", "priority", "novel")),
    "stop": st.lists(st.text("abc", min_size=1), min_size=1, max_size=4),
    "temperature": SHARE,
    "tool_choice": st.sampled_from((*get_args(ChoiceWord), NamedTool("look"))),
    "top_k": st.integers(1, 100),
    "top_p": SHARE,
}
# Further names of a field that has one, and what stands in no body.
OTHERS: Final = frozenset({"max_completion_tokens", "model", "thinking"})


@cache
def adapter(name: str) -> Adapter:
    entry = {"adapter": name, "base_url": "https://b"}
    settings = parse_settings(json.dumps({"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}))
    return load_adapters(settings)["b"]


def round_trip(name: str, model: str, asked: Mapping[str, Any]) -> tuple[Conversation, tuple[Notice, ...]]:
    """What a gateway with this wire in front of it reads of what one with this wire behind it has sent."""
    params = {field: value for field, value in asked.items() if field != "tool_choice"}
    limits = {field: asked[field] for field in ("temperature", "top_p", "max_tokens", "seed") if field in asked}
    conversation = Conversation(
        (Turn("user", (Text("Hello"),), index=0),),
        (FUNCTION,),
        asked.get("tool_choice", "auto"),
        model=model,
        sampling=Sampling(**limits, stop=tuple(asked.get("stop", ()))),
        params=params,
        dialect="openai_chat",
    )
    request = adapter(name).encode(conversation, Policy())
    head = RequestHead(f"/v1beta{request.path}" if name == "gemini" else request.path)
    decoded = load_dialect(name).decode(Document(json.loads(request.body)), head).conversation
    return decoded, (*request.notices, *decoded.notices)


@pytest.mark.parametrize("name", BOTH)
def test_each_supported_name_has_values_here(name: str) -> None:
    assert TABLES[name].supported - OTHERS <= ASKED.keys()


# The models of which the effort depends.
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "gemini": ("gemini-2.5-flash", "gemini-2.5-pro", "gemini-3-pro-preview", "gemini-3-flash"),
}
CASES: Final = [
    (name, model, field)
    for name in BOTH
    for field in sorted(TABLES[name].supported - OTHERS)
    for model in (MODELS.get(name, ("model",)) if field == "reasoning_effort" else ("model",))
]


@pytest.mark.parametrize(("name", "model", "field"), CASES)
@given(data=st.data())
def test_a_parameter_comes_back_or_a_notice_names_what_was_sent(
    name: str, model: str, field: str, data: st.DataObject
) -> None:
    value = data.draw(ASKED[field])
    back, notices = round_trip(name, model, {field: value})
    told = [notice for notice in notices if notice.action in ("changed", "dropped")]
    if field == "tool_choice":
        assert back.tool_choice == value
    elif back.params.get(field) != value:
        assert told
        assert any(field in notice.detail or str(value) in notice.detail for notice in told)
    if field in Sampling.__struct_fields__ and not told:
        found = getattr(back.sampling, field)
        assert (list(found) if field == "stop" else found) == value


COUNTS: Final = st.integers(0, 2**40)


@given(uncached=COUNTS, cached=COUNTS, said=COUNTS, thought=COUNTS)
def test_counts_of_gemini_come_back(uncached: int, cached: int, said: int, thought: int) -> None:
    prompt, completion = uncached + cached, said + thought
    report = UsageReport(
        prompt,
        completion,
        prompt + completion,
        extra={
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": thought},
        },
    )
    assert gemini_usage.decode_usage(gemini_usage.usage_object(report)) == report


@pytest.mark.parametrize("reason", get_args(Reason))
def test_a_finish_reason_of_gemini_comes_back(reason: Reason) -> None:
    word = gemini_finish.finish_word(Finish(reason))
    found, notice = gemini_finish.decode_finish(word, called=reason == "tool_calls", passes=False)
    assert (found, notice) == (Finish(reason, word), None)


@pytest.mark.parametrize("word", gemini_finish.REASONS.values)
def test_a_finish_word_of_gemini_comes_back(word: str) -> None:
    found, notice = gemini_finish.decode_finish(word, called=False, passes=False)
    assert notice is None
    assert gemini_finish.finish_word(found) == word
