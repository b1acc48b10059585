"""Each planted defect turns its own check and no other; what needs that check is skipped."""

from collections.abc import Mapping
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.demo.faults.catalogue import FAULTS
from gateway.diagnostics.doctor.examination import PROBES
from gateway.diagnostics.doctor.finding import Section
from tests.server.doctor.examined import examined, findings, turned

KEY: Final = "DOCTOR_KEY"
# What each defect turns. The sound backend refuses a broken history, too, in words that the gateway does not know.
TURNS: Final[Mapping[str, Mapping[str, str]]] = {
    "wrong_key_accepted": {"D211": "todo"},
    "right_key_refused": {"D211": "broken"},
    "models_missing": {"D212": "todo"},
    "models_empty": {"D212": "todo"},
    "models_wrong_name": {"D212": "todo"},
    "error_in_200": {"D221": "broken"},
    "wrong_content_type": {"D221": "broken"},
    "stream_cut": {"D222": "broken"},
    "stream_reset": {"D222": "broken"},
    "no_usage": {"D223": "todo"},
    "unknown_fields": {"D226": "remark"},
    "no_done": {"D224": "todo"},
    "usage_null": {"D223": "todo"},
    "null_fields": {"D226": "remark"},
    "arguments_object": {"D230": "remark"},
    "empty_arguments": {"D233": "remark"},
    "no_call_index": {"D266": "remark"},
    "calls_end_with_stop": {"D267": "remark"},
    "buffered": {"D225": "todo"},
    "silence_cut": {"D283": "todo"},
    "slow_first_byte": {"D227": "todo"},
    "cancel_keeps_slot": {"D282": "todo"},
    "name_changed": {"D231": "broken"},
    "one_of_two_calls": {"D232": "todo"},
    "ids_too_long": {"D265": "todo"},
    "ids_repeated": {"D265": "remark"},
    "ids_with_colons": {"D265": "remark"},
    "ignores_choice_none": {"D237": "broken"},
    "ignores_choice_required": {"D238": "todo"},
    "ignores_choice_named": {"D239": "todo"},
    "ignores_results": {"D234": "todo"},
    "calls_as_text": {"D231": "todo", "D238": "todo", "D239": "todo"},
    "thoughts_as_text": {"D228": "todo"},
    "empty_answer": {"D221": "broken"},
    "context_cut": {"D284": "todo"},
    "ignores_seed": {"D273": "todo"},
    "ignores_stop": {"D272": "todo"},
    "ignores_max_tokens": {"D274": "todo"},
    "ignores_response_format": {"D271": "todo"},
    "ignores_n": {"D277": "remark"},
    "ignores_logprobs": {"D275": "todo"},
    "ignores_tools": {"D231": "todo", "D238": "todo", "D239": "todo"},
    "ignores_stream": {"D229": "todo"},
    "results_in_order": {"D235": "todo"},
    "refuses_parts": {"D236": "todo"},
    "needs_reasoning": {"D241": "todo"},
    "refuses_reasoning": {"D243": "todo"},
    "needs_signature": {"D242": "todo"},
    "refuses_orphan": {"D251": "remark TOOL_ORPHAN"},
    "refuses_unanswered": {"D252": "remark CALLS_UNANSWERED"},
    "refuses_two_system": {"D253": "todo"},
    "refuses_developer": {"D254": "todo"},
    "refuses_assistant_first": {"D258": "todo"},
    "refuses_assistant_last": {"D255": "todo"},
    "refuses_late_system": {"D256": "todo"},
    "refuses_repeated_role": {"D257": "todo"},
    "refuses_user_after_tool": {"D259": "todo"},
    "refuses_long_ids": {"D261": "todo"},
    "refuses_colon_ids": {"D262": "todo"},
    "refuses_repeated_ids": {"D263": "remark TOOL_ID_DUPLICATE"},
    "refuses_dotted_names": {"D264": "todo"},
    "refuses_tools": {"D231": "todo"},
    "refuses_forced_choice": {"D238": "todo", "D239": "todo"},
    "refuses_named_choice": {"D239": "todo"},
    "refuses_max_tokens": {"D220": "todo"},
    "context_unnamed": {"D284": "todo"},
    "refuses_stream_options": {"D223": "todo"},
    "usage_total": {"D223": "todo"},
    "content_filter": {"D274": "todo"},
    "blocked": {"D222": "broken"},
    "forged_turn": {"D223": "todo", "D274": "todo"},
    "go_away": {"D281": "todo"},
}
# What the gateway serves as any other answer turns none.
SERVED: Final = {
    ("redacted", "messages"),
    *((name, "responses") for name in ("unended_item", "wrong_done", "done_only", "last_only")),
    # Unknown fields of protobuf.
    ("unknown_fields", "grpc"),
}
# Its answers take seconds, which no check is about.
UNTRIED: Final = {"slow"}
_STREAMS: Final = ("text", "grpc", "agent")
# Where a wire shows a defect in another check.
OTHERWISE: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    # These wires stream every answer.
    **{(defect, wire): {"D221": "broken"} for defect in ("stream_cut", "stream_reset") for wire in _STREAMS},
    ("ignores_stream", "text"): {"D221": "broken"},
    ("content_filter", "responses"): {"D231": "todo", "D238": "todo", "D239": "todo", "D274": "todo"},
    # A name that no tool has stays in the text.
    ("name_changed", "text"): {"D231": "todo", "D238": "todo", "D239": "todo"},
    # The gateway ends the answer itself.
    ("ignores_stop", "text"): {"D272": "remark"},
}
# Each answer of these takes half a second or more, so that only these checks are tried; all are of any other.
SLOW: Final[Mapping[str, tuple[str, ...]]] = {
    "buffered": ("D22",),
    "slow_first_byte": ("D22",),
    "cancel_keeps_slot": ("D282",),
}
ENTRIES: Final[Mapping[str, dict[str, Json]]] = {
    **{defect: {"api_key_env": KEY} for defect in ("wrong_key_accepted", "right_key_refused")},
    "slow_first_byte": {"timeouts": {"first_byte": 1}},
}


_HEALTHY: Final[dict[str, Section]] = {}


async def _healthy(wire: str) -> Section:
    if wire not in _HEALTHY:
        _HEALTHY[wire] = (await examined(wire)).section
    return _HEALTHY[wire]


def test_every_defect_is_judged() -> None:
    faults = [fault for wire in FAULTS.values() for fault in wire.items()]
    judged = {*TURNS, *(name for name, _ in SERVED), *UNTRIED}
    assert judged <= {name for name, _ in faults}
    # What has a kind is answered with an error in a promised way, or served: tests/promises play it.
    assert judged >= {name for name, fault in faults if not fault.kind}
    assert {check for found in TURNS.values() for check in found} <= {probe.id for probe in PROBES}
    assert all(defect in FAULTS[wire] for defect, wire in OTHERWISE)
    assert all([*TURNS.values(), *OTHERWISE.values()])


@pytest.mark.parametrize(
    ("defect", "wire"),
    sorted({(name, wire) for name in TURNS for wire in FAULTS if name in FAULTS[wire]} | SERVED),
)
async def test_a_defect_turns_its_check_and_no_other(defect: str, wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "demo-key")
    url = f"demo:{wire}?defect={defect}"
    found = (await examined(wire, url, only=SLOW.get(defect, ()), entry=ENTRIES.get(defect))).section
    changed = turned(await _healthy(wire), found)
    expected = {} if (defect, wire) in SERVED else OTHERWISE.get((defect, wire), TURNS.get(defect))
    assert {check: verdict for check, verdict in changed.items() if verdict != "skipped"} == expected


@pytest.mark.parametrize(
    "defect",
    [
        "refuses_two_system",
        "refuses_developer",
        "refuses_repeated_role",
        "refuses_long_ids",
        "refuses_parts",
        "refuses_max_tokens",
        "refuses_named_choice",
    ],
)
async def test_the_suggested_profile_mends_what_was_found(defect: str) -> None:
    url = f"demo:chat?defect={defect}"
    only = tuple(TURNS[defect])
    section = (await examined("chat", url, only=only)).section
    (profile, name) = section.suggestions
    mended = await examined(
        "chat", url, only=only, own_profile={profile.path[1]: profile.value}, entry={"profile": name.value}
    )
    assert {one.verdict for one in findings(mended.section).values()} == {"ok"}
