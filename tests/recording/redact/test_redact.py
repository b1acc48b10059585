import base64
import json
import re
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.warp.backend.decode import error_body as warp_error_body
from gateway.core.context_length import read_too_long
from gateway.recording.lines import BytesLine, RedactionLevel, data_of
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import compare_to_recorded, differences, outcome_of
from gateway.recording.recording import Interaction, Recording, write_recording
from gateway.recording.redact.redact import redact
from gateway.recording.redact.wire import Redactor
from gateway.recording.redact.words import Words
from gateway.recording.remake import remade
from tests.core.test_context_length import SAID
from tests.recording.redact.canaries import CANARIES, core_of
from tests.recording.samples import golden_recordings, goldens, interaction_of, names
from tests.tiers import sample

SEED = b"0123456789abcdef"
LEVELS: tuple[RedactionLevel, ...] = ("none", "shape", "full")
# The words of the provider's refusal decide how the gateway explains it.
EXPLAINED = "openai_chat_backend_refuses_history"
NAMED = dict(zip(names(), golden_recordings(), strict=True))


@sample(lambda name, level: (name.partition("_")[0], level))
@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("level", ["shape", "full"])
def test_a_redacted_recording_shows_the_same(name: str, level: RedactionLevel) -> None:
    redacted = redact(NAMED[name], level, SEED)
    if name == EXPLAINED:
        assert redacted.differences and redacted.needed and not redacted.recording.header.redaction.checked
        redacted = redact(NAMED[name], level, SEED, keep=redacted.needed)
    assert redacted.differences == () and redacted.recording.header.redaction.checked
    (before,), (after,) = NAMED[name].interactions(), redacted.recording.interactions()
    run = run_offline(after)
    assert differences(outcome_of(run_offline(before)), outcome_of(run)) == ()
    assert [check for check in compare_to_recorded(after, run) if check.difference] == []
    assert len(write_recording(redacted.recording)) > 0


@pytest.mark.parametrize("name", [*NAMED][::5])
@pytest.mark.parametrize("level", LEVELS)
def test_redacting_twice_is_redacting_once(name: str, level: RedactionLevel) -> None:
    once = redact(NAMED[name], level, SEED).recording
    assert redact(once, level, b"another seed").recording == once


def test_a_recording_is_never_less_redacted_than_it_was() -> None:
    full = redact(golden_recordings()[0], "full", SEED).recording
    assert redact(full, "shape", SEED).recording == full
    assert redact(full, "none", SEED).recording == full


def test_no_text_is_left(name: str = "openai_chat_round_trip") -> None:
    said = "Weltraumbahnhof"
    interaction = interaction_of(goldens()[names().index(name)])
    body = json.loads(interaction.body or b"")
    body["messages"][0]["content"] = f"{said} {said.upper()}"
    changed = _with_body(interaction, json.dumps(body).encode())
    recording = Recording().with_interactions([remade(changed, run_offline(changed))])
    assert said.encode() in write_recording(recording)
    for level in ("shape", "full"):
        written = write_recording(redact(recording, level, SEED).recording)
        assert said.lower().encode() not in written.lower()


def _with_body(interaction: Interaction, body: bytes) -> Interaction:
    inputs = tuple(step for step in interaction.steps if not isinstance(step, BytesLine) or step.side == "backend")
    request = msgspec.structs.replace(interaction.request, body=data_of(body))
    return msgspec.structs.replace(interaction, request=request, steps=inputs[:-1], end=None, notice_lines=())


def _with_canary(canary: str) -> Recording:
    """A recording with the canary in every place where a secret may stand."""
    stream = "".join(
        f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
        for piece in ("Your key is ", canary[:9], canary[9:17], canary[17:], " ", canary, " indeed")
    )
    stream += f"data: {json.dumps({'id': 'c', 'choices': [], 'usage': {canary: 1}})}\n\n"
    stream += (
        f': {canary}\n\ndata: {{"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}]}}\n\ndata: [DONE]\n\n'
    )
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps({"k": canary, "e": _as_escapes(canary)})},
    }
    messages = [
        {"role": "system", "content": f"The key is {canary}."},
        {"role": "user", "content": [{"type": "text", "text": canary}], "name": "n"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": f'{{"password": "{_escaped(canary)}"}}'},
    ]
    body = {
        "model": "m",
        "stream": True,
        "messages": messages,
        "user": canary,
        "metadata": {"api_key": canary, canary: "named"},
    }
    template = interaction_of(goldens()[names().index("openai_chat_plain_answer")])
    route = template.route and msgspec.structs.replace(template.route, options={"passes": [canary]})
    request = msgspec.structs.replace(
        template.request,
        body=data_of(json.dumps(body).encode()),
        headers={"user-agent": canary.replace("\n", " ")},
        path=f"/v1/chat/completions/{quote(canary)}?x={canary}",
    )
    head, *_, close, _ = (step for step in template.steps if not isinstance(step, BytesLine))
    reads = [BytesLine(1, "backend", 2, data_of(stream.encode()[at : at + 40])) for at in range(0, len(stream), 40)]
    inputs = Interaction(request, template.route, answer=template.answer, steps=(head, *reads, close))
    done = remade(inputs, run_offline(inputs))
    return Recording().with_interactions([msgspec.structs.replace(done, route=route)])


def _as_escapes(text: str) -> str:
    """JSON with every second character as an escape."""
    return (
        '{"k": "' + "".join(f"\\u{ord(char):04x}" if at % 2 else _escaped(char) for at, char in enumerate(text)) + '"}'
    )


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _unescaped(text: bytes) -> bytes:
    """Text in which no character is written as an escape, however deep the JSON is that stands in JSON."""
    return re.sub(rb"\\+u00([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", CANARIES)
def test_no_secret_is_left_anywhere(kind: str, level: RedactionLevel) -> None:
    canary = CANARIES[kind]
    recording = _with_canary(canary)
    before = write_recording(recording)
    redacted = redact(recording, level, SEED)
    written = write_recording(redacted.recording)
    core = core_of(canary).encode()
    assert core in before and quote(canary).encode() in before and core in _unescaped(before)
    assert core not in written and core not in _unescaped(written) and base64.b64encode(core)[2:-4] not in written
    assert redacted.removed > 0
    # A secret that is cut over many events is one secret.
    for whole, clean in zip(_streamed(recording), _streamed(redacted.recording), strict=True):
        assert core.decode() in whole and core.decode() not in clean


def _streamed(recording: Recording) -> tuple[str, str]:
    """The text of the backend's stream, and that of the client's."""
    (interaction,) = recording.interactions()
    read, written = (b"".join(line.data.content for line in side) for side in (interaction.reads, interaction.writes))
    return _text(read), _text(written)


def _text(stream: bytes) -> str:
    pieces = [json.loads(line[6:]) for line in stream.decode().split("\n") if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for piece in pieces for choice in piece.get("choices", ()))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([*CANARIES.values()]), st.sampled_from(LEVELS), st.binary(min_size=8, max_size=8))
def test_no_secret_is_left_under_any_seed(canary: str, level: RedactionLevel, seed: bytes) -> None:
    assert core_of(canary).encode() not in write_recording(redact(_with_canary(canary), level, seed).recording)


@pytest.mark.parametrize("level", LEVELS)
def test_a_secret_is_counted_once(level: RedactionLevel) -> None:
    once = redact(_with_canary(CANARIES["openai"]), level, SEED)
    again = redact(once.recording, level, SEED)
    assert (once.removed > 0, again.removed, again.recording) == (True, 0, once.recording)


def test_configured_secrets_are_left_nowhere() -> None:
    recording = _with_canary("an ordinary sentence")
    written = write_recording(redact(recording, "none", SEED, ["ordinary sentence"]).recording)
    assert b"ordinary sentence" not in written


def test_the_smallest_text_that_must_stay_is_named() -> None:
    (needed,) = redact(NAMED[EXPLAINED], "shape", SEED).needed
    assert "must be followed by tool messages" in needed
    assert redact(NAMED[EXPLAINED], "shape", SEED, keep=[needed]).recording.header.redaction.kept == (needed,)


def _data(*events: object) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


@pytest.mark.parametrize("field", ["content", "delta", "text", "arguments"])
@pytest.mark.parametrize("level", ["shape", "full"])
def test_a_text_that_is_cut_where_its_pieces_look_like_ids_is_one_text(field: str, level: RedactionLevel) -> None:
    """The last event repeats the text that the others have brought; the gateway compares both."""
    text = "Say item12Abcdef34 and go"
    for at in range(1, len(text)):
        pieces = [text[:at], text[at:]]
        stream = _data(*({"type": "d", field: piece} for piece in pieces), {"type": "done", field: text})
        clean = Redactor(Words(level, SEED)).data(stream).decode()
        said = [json.loads(line[6:])[field] for line in clean.split("\n\n") if line]
        assert said[0] + said[1] == said[2] and "Abcdef" not in clean, pieces


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "API_KEY_INVALID", "PROHIBITED_CONTENT"])
def test_a_reason_of_one_word_stays_and_a_sentence_does_not(reason: str) -> None:
    event = {
        "details": {"reason": reason},
        "why": {"reason": "Weltraumbahnhof said so"},
        "args": {"reason": "Secretly"},
    }
    clean = json.loads(Redactor(Words("full", SEED)).data(json.dumps(event).encode()))
    assert clean["details"]["reason"] == reason
    assert "Weltraum" not in clean["why"]["reason"] and clean["args"]["reason"] == "Xxxxxxxx".lower()


@pytest.mark.parametrize(
    "words",
    [
        *warp_error_body._NO_QUOTA_WORDS,
        "exceed_context_size context window context_length context size `inputs` tokens inputs must have less",
        "larger than max, message too large",
    ],
)
@pytest.mark.parametrize("level", ["shape", "full"])
def test_the_words_by_which_a_refusal_is_told_stay(words: str, level: RedactionLevel) -> None:
    assert Words(level, SEED).text(words) == words


@pytest.mark.parametrize("level", ["shape", "full"])
@pytest.mark.parametrize("name", SAID)
def test_a_request_that_is_too_long_is_known_in_a_redacted_error_too(name: str, level: RedactionLevel) -> None:
    message, _ = SAID[name]
    assert read_too_long(Words(level, SEED).text(message), None, {}) is not None
