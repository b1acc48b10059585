"""D22: whole and streamed answers, their token counts, and when they arrive."""

from typing import Final

import msgspec

from gateway.core.events import TextDelta
from gateway.diagnostics.doctor.accepting import sends
from gateway.diagnostics.doctor.finding import Finding, broken, ok, remark, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Answer, Question
from gateway.diagnostics.doctor.requests import BOUND, COUNT, MOST_TOKENS, NEWER_BOUND, SHORT

# Most wires report the counts of a stream in any case, that of chat completions only on request.
COUNTED: Final = Question({**SHORT.fields, "stream": True, "stream_options": {"include_usage": True}})
# An answer of fewer pieces, or one that came sooner, is too short to say how it was sent.
LEAST_PIECES: Final = 8
LEAST_WAIT_S: Final = 0.25
# So many pieces in each read were collected on the way.
COLLECTED: Final = 8

# Marks of thoughts and of chat templates, which belong to no text.
_MARKS: Final = ("<think>", "</think>", "<|im_end|>", "<|eot_id|>", "<|channel|>", "[/INST]")

_ADVICE: Final = {
    "upstream_stream_truncated": "something ends the connection too early: a proxy's limit, or the backend itself",
    "upstream_invalid_response": "check base_url and the adapter: the backend does not speak this wire",
    "upstream_invalid_event": "check the adapter: the backend does not speak this wire",
    "model_not_found": "correct models.*.name",
    "upstream_unknown_url": "correct base_url and the path at its end (most servers want /v1)",
    "rate_limit_exceeded": "wait, or ask the provider for a higher limit: the questions come one after another",
    "insufficient_quota": "add credit at the provider",
    "upstream_overloaded": "wait until it has loaded its model, or has less to do",
    "upstream_redirect": "set base_url to the address that it redirects to",
    "upstream_error": "look at the log of the backend",
    "upstream_auth_error": "set the variable of api_key_env to a valid key",
    "upstream_timeout": "raise the timeouts of the backend, or look at its load",
    "upstream_connection_error": "start the backend, or correct base_url",
}


async def _bound(backend: ProbedBackend) -> Finding:
    if not sends(backend, BOUND):
        return remark("its wire has no field for it: only the model ends an answer")
    answer = await backend.ask(SHORT)
    if answer.refusal is None or BOUND not in answer.words:
        return ok(BOUND)
    changes = {"request_rules": {"limit": NEWER_BOUND}}
    if (await backend.ask(msgspec.structs.replace(SHORT, changes=changes))).refusal is None:
        return todo(f"{BOUND} is refused, and {NEWER_BOUND} accepted", "see the suggestion", answer.words, changes)
    return broken(f"{BOUND} is refused, and so is {NEWER_BOUND}", "clients cannot bound an answer", answer.words)


async def _whole(backend: ProbedBackend) -> Finding:
    return _complete(await backend.ask(SHORT), "a whole answer")


async def _stream(backend: ProbedBackend) -> Finding:
    return _complete(await backend.ask(COUNT), "a streamed answer")


def _complete(answer: Answer, what: str) -> Finding:
    if answer.error is not None:
        code = answer.error.code or ""
        advice = _ADVICE.get(code, f"see docs/errors.md for the code {code}")
        return broken(f"{what} fails: {answer.error.message}", advice, answer.words)
    if not answer.text.strip() and answer.finish is not None and answer.finish.reason == "length":
        return todo(f"{what} has no text within {MOST_TOKENS:,} tokens", "let the model think less before it answers")
    if not answer.text.strip():
        shown = answer.body[:200].decode("utf-8", "replace")
        return broken(f"{what} has no text", "check the model's name and its chat template", shown)
    return ok(f"{what}, {len(answer.text)} characters")


async def _usage(backend: ProbedBackend) -> Finding:
    counted = await backend.ask(COUNTED)
    if counted.refusal is not None:
        return todo("stream_options is refused", "clients must not ask for token counts of streams", counted.words)
    answers = {"whole": await backend.ask(SHORT), "streamed": counted}
    lacking = [form for form, answer in answers.items() if not _is_counted(answer)]
    if not lacking:
        return ok("token counts in both forms")
    return todo(
        f"no token counts in {' and '.join(lacking)} answers",
        "the gateway estimates them, and marks them so; switch them on at the backend if you bill by them",
    )


def _is_counted(answer: Answer) -> bool:
    return answer.usage is not None and answer.usage.completion_tokens is not None


async def _pace(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(COUNT)
    if _is_collected(answer):
        # A busy machine reads late, and then everything at once; it is seldom so busy twice.
        (answer,) = await backend.ask_at_once([COUNT])
    if _is_collected(answer):
        return todo(
            f"{_pieces(answer)} pieces arrived in {len(answer.reads)} reads, after {answer.reads[0].t:.1f} s",
            "a proxy collects the stream: switch its buffering off (nginx: proxy_buffering off)",
        )
    return ok(f"pieces: {_pieces(answer)}, reads: {len(answer.reads)}")


def _is_collected(answer: Answer) -> bool:
    """Returns whether the pieces of a stream came together."""
    pieces, reads = _pieces(answer), answer.reads
    long_enough = pieces >= LEAST_PIECES and bool(reads) and reads[-1].t >= LEAST_WAIT_S
    return long_enough and pieces >= COLLECTED * len(reads)


def _pieces(answer: Answer) -> int:
    """Returns how many pieces a stream had: deltas of text, or events, since a decoder may join the text of several."""
    events = sum(line.startswith(b"data:") for line in answer.body.splitlines())
    return max(events, sum(isinstance(event, TextDelta) for event in answer.events))


async def _marks(backend: ProbedBackend) -> Finding:
    answers = [await backend.ask(question) for question in (SHORT, COUNT, COUNTED)]
    mark = next((mark for mark in _MARKS for answer in answers if mark in answer.text), "")
    if not mark:
        return ok("none")
    advice = "switch on what reads them at the backend (vLLM: --reasoning-parser, llama.cpp: --jinja)"
    return todo(f"the text has {mark}, which clients show to people", advice)


async def _first_byte(backend: ProbedBackend) -> Finding:
    reads = (await backend.ask(COUNT)).reads
    limit = backend.settings.timeouts.first_byte
    first = reads[0].t if reads else 0.0
    if first < limit / 2:
        return ok(f"after {first:.1f} s, of {limit:g} s at most")
    detail = f"the first byte took {first:.1f} s, and timeouts.first_byte is {limit:g} s"
    return todo(detail, "raise timeouts.first_byte")


_NEEDS: Final = ("D222",)
PROBES: Final = (
    Probe("D220", "bound", "Can the length of an answer be bounded?", _bound, 2, ("D202", "D211")),
    Probe("D221", "answer", "Does a short question get a whole answer?", _whole, needs=("D202", "D211")),
    Probe("D222", "stream", "Does a streamed answer arrive, and complete?", _stream, needs=("D221",)),
    Probe("D223", "usage", "Do answers have token counts?", _usage, 1, _NEEDS, "token counts"),
    Probe("D225", "pace", "Do the pieces of a stream arrive one by one?", _pace, 1, _NEEDS),
    Probe("D227", "first byte", "Does the first byte arrive well within its limit?", _first_byte, 0, _NEEDS),
    Probe("D228", "marks", "Is the text free of marks of thoughts and templates?", _marks, 0, _NEEDS),
)
