"""Defines scenarios that end in text."""

from collections.abc import Iterable
from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo.framing_options import Frame, FramingOptions
from adapters.warp.demo.scenario import Expect, WarpScenario
from adapters.warp.demo.steps import (
    BEGIN,
    COMMIT,
    CREATE_TASK,
    INIT,
    PRELUDE,
    ScenarioState,
    Step,
    finish,
    framed,
    more_text,
    reasoning_message,
    text_message,
    text_start,
    title,
    together,
)
from gateway.demo.player.playback import Wait

HELLO: Final = "Hello, world. This is a plain answer."
THOUGHT: Final = "The user wants an answer. I shall give one."
# Every plane, joined emoji, combining marks, the line separators that do not end a line on the wire, and no NUL.
UNICODE: Final = (
    "Grüße, 世界! \U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f3\ufe0f\u200d\U0001f308 \U0001d518 e\u0301 "
    "\u2028 \u2029 \u0085 \x01\x1b\x7f \ufeff \u202etxet\u202c שלום مرحبا\r\n\ttab\n\n"
)
LONG: Final = UNICODE * (1024 * 1024 // len(UNICODE.encode()))

_HEAD: Final = (*PRELUDE, BEGIN)
_TAIL: Final = (COMMIT, title("A title that is not content"))
_LIMIT: Final = pb.StreamFinished(max_token_limit=pb.StreamFinished.MaxTokenLimit())


def _usage(*, exact: bool) -> pb.StreamFinished:
    finished = pb.StreamFinished(done=pb.StreamFinished.Done())
    finished.conversation_usage_metadata.total_input_tokens = 30
    finished.conversation_usage_metadata.warp_token_usage["auto"].total_tokens = 42
    if exact:
        finished.token_usage.add(model_id="auto", total_input=30, output=12, input_cache_read=4)
    return finished


def _in_large_pieces(text: str, size: int) -> Step:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return together(text_start(parts[0]), *(more_text(part) for part in parts[1:]))


def _own_words(state: ScenarioState) -> Iterable[Frame]:
    """The question and the ids of this response, so that a mix-up of two responses is visible."""
    text = f"{state.ids.conversation}|{state.request.dialogue.question}"
    return text_message(text)(state)


def _received(state: ScenarioState) -> Iterable[Frame]:
    return text_message(state.request.query)(state)


def _endless(state: ScenarioState) -> list[Frame]:
    frames: list[Frame] = []
    for at in range(5000):
        frames += [*text_start(f"{at} ")(state), Wait(0.02)]
    return frames


_ENCODINGS: Final = (
    framed(FramingOptions(padding=False), text_start("Hello,")),
    framed(FramingOptions(alphabet="standard"), more_text(" wörld??>>~~")),
    framed(FramingOptions(quotes=True), more_text(". This")),
    framed(FramingOptions(space=True), more_text(" is")),
    framed(FramingOptions(newline="crlf"), more_text(" a")),
    framed(FramingOptions(newline="cr"), more_text(" plain")),
    framed(FramingOptions(lines=3), more_text(" answer")),
    framed(FramingOptions(name=False, comments=True), more_text(".")),
)

TEXT: Final[dict[str, WarpScenario]] = {
    "plain_text": WarpScenario(
        about="text in several pieces, with the user's echo and a title around it",
        turns=((*_HEAD, text_message(HELLO), *_TAIL, finish()),),
        expect=Expect(text=HELLO),
    ),
    "reasoning_text": WarpScenario(
        about="reasoning, then text",
        turns=((*_HEAD, reasoning_message(THOUGHT), text_message(HELLO), COMMIT, finish()),),
        expect=Expect(text=HELLO, reasoning=THOUGHT),
    ),
    "max_tokens": WarpScenario(
        about="text that ends at the token limit",
        turns=((*_HEAD, text_message("This answer is cut"), COMMIT, finish(_LIMIT)),),
        expect=Expect(text="This answer is cut", finish="length"),
    ),
    "finished_without_reason": WarpScenario(
        about="finished without a reason and without any output",
        turns=((INIT, CREATE_TASK, finish(pb.StreamFinished())),),
        expect=Expect(),
    ),
    "text_without_reason": WarpScenario(
        about="text, then finished without a reason (read as done)",
        turns=((*_HEAD, text_message(HELLO), COMMIT, finish(pb.StreamFinished())),),
        expect=Expect(text=HELLO),
    ),
    "empty_finish": WarpScenario(
        about="finished as done, without any output",
        turns=((*PRELUDE, finish()),),
        expect=Expect(),
    ),
    "usage_only_total": WarpScenario(
        about="usage only as a total of the whole conversation",
        turns=((*_HEAD, text_message(HELLO), COMMIT, finish(_usage(exact=False))),),
        expect=Expect(text=HELLO),
    ),
    "usage_exact": WarpScenario(
        about="usage of this turn: 30 in (4 of them cached), 12 out",
        turns=((*_HEAD, text_message(HELLO), COMMIT, finish(_usage(exact=True))),),
        expect=Expect(text=HELLO),
    ),
    "unicode": WarpScenario(
        about="characters of every plane and the controls, word by word",
        turns=((*_HEAD, text_message(UNICODE), COMMIT, finish()),),
        expect=Expect(text=UNICODE),
    ),
    "long_unicode": WarpScenario(
        about="the same, 1 MiB of it",
        turns=((*_HEAD, _in_large_pieces(LONG, 4099), COMMIT, finish()),),
        expect=Expect(text=LONG),
    ),
    "encodings": WarpScenario(
        about="every event with a different framing",
        turns=((*_HEAD, *_ENCODINGS, COMMIT, finish()),),
        expect=Expect(text="Hello, wörld??>>~~. This is a plain answer."),
    ),
    "concurrent": WarpScenario(
        about="a response that contains the conversation's id and the question",
        turns=((*_HEAD, _own_words, COMMIT, finish()),),
        expect=Expect(text=None),
    ),
    "echo": WarpScenario(
        about="the query, unchanged",
        turns=((*_HEAD, _received, COMMIT, finish()),),
        expect=Expect(text=None),
    ),
    "client_cancel": WarpScenario(
        about="a word every 20 ms for 100 s, for clients that disconnect",
        turns=((*_HEAD, COMMIT, _endless, finish()),),
        expect=Expect(text=None, finish=None),
        waits=True,
    ),
}
