"""D283 and D284: an answer that is silent for long, and a prompt that is too long; tried only with --slow."""

from functools import partial
from typing import Final

from gateway.core.context_length import Overflow
from gateway.core.conversation import EMPTY
from gateway.core.errors import BackendError, BackendTimeout, GatewayError
from gateway.diagnostics.doctor.finding import Changes, Finding, ok, skipped, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Answer, Question
from gateway.diagnostics.doctor.requests import COUNT, request, user
from gateway.diagnostics.doctor.wire_probes import has_two_forms

SILENCE_S: Final = 60.0
# The bounds of an answer that is to be silent, whatever the model's pace.
LEAST_WRITTEN: Final = 256
MOST_WRITTEN: Final = 4096
_NUMBERS: Final = user("Count from 1 to 2000 in digits, with a space between, and write nothing else.")
# A shorter silence shows nothing, as a share of the one that is wanted.
_NO_SILENCE: Final = 0.1

# The sizes of prompts, in words of about one token. The first shows that the model can do what is asked.
SIZES: Final = (500, 2_000, 8_000, 32_000)
NEEDLE: Final = "falcon-7141"
_FILLER: Final = "the sun is warm and the sea is blue and the wind is mild and the sand is white"
# The code of every adapter for a prompt that is longer than the model's context.
_TOO_LONG: Final = "context_length_exceeded"
# The price that is shown, with the answers.
_SILENCE_TOKENS: Final = MOST_WRITTEN + 100
_CONTEXT_TOKENS: Final = 55_000


async def silence(seconds: float, backend: ProbedBackend) -> Finding:
    """Asks for a whole answer that a model writes for about so many seconds: nothing is sent before its end."""
    paced = await backend.ask(COUNT)
    if not has_two_forms(paced):
        return skipped("its wire has only streams, and no answer of those can be made silent")
    answer = await backend.ask(_written(paced, seconds))
    if _is_over_time(answer):
        return skipped(f"the answer was not complete within {answer.seconds:.0f} s")
    if answer.error is not None:
        detail = f"an answer that is silent fails after {answer.seconds:.1f} s: {answer.error.message}"
        advice = "look for the read timeout of a proxy (nginx: proxy_read_timeout), and ask for streams until then"
        return todo(detail, advice, answer.words)
    silent = answer.reads[0].t if answer.reads else 0.0
    if silent < seconds * _NO_SILENCE:
        return skipped(f"the answer came after {silent:.1f} s, too soon to show anything")
    more = "" if silent >= seconds else "; a longer silence could not be had"
    return ok(f"complete after {silent:.1f} s of silence{more}")


def _written(paced: Answer, seconds: float) -> Question:
    """Returns the question for an answer of about so many seconds, at the pace of another one."""
    took = paced.reads[-1].t if paced.reads else 0.0
    tokens = (paced.usage.completion_tokens if paced.usage is not None else None) or len(paced.text.split())
    wanted = int(tokens / took * seconds) if took > 0 else MOST_WRITTEN
    return request(_NUMBERS, stream=False, max_tokens=max(LEAST_WRITTEN, min(wanted, MOST_WRITTEN)))


async def context(backend: ProbedBackend) -> Finding:
    """Asks for a word at the beginning of ever longer prompts, until one is not read to its beginning."""
    accepted, repeats = 0, False
    for words in SIZES:
        answer = await backend.ask(recall(words))
        if answer.error is not None:
            return _refused(answer, f"a prompt of {words:,} words", f"one of {accepted:,} is accepted")
        repeated = NEEDLE in answer.text
        if repeats and not repeated:
            return _lost(answer, words)
        accepted, repeats = words, repeated or repeats
    if not repeats:
        return skipped(f"prompts of up to {accepted:,} words are accepted; the model repeats no word from any of them")
    return ok(f"a prompt of {accepted:,} words is read from its beginning; a longer one was not tried")


def recall(words: int) -> Question:
    """Returns the question for the word at the beginning of a prompt of about so many words."""
    filler = _FILLER.split()
    text = " ".join((filler * (words // len(filler) + 1))[:words])
    asked = f'At the end you must repeat "{NEEDLE}".\n{text}\nWhich word must you repeat? Answer with that word alone.'
    return request(user(asked), stream=False)


def _refused(answer: Answer, prompt: str, accepted: str) -> Finding:
    """Returns the finding about a prompt that got an error. `accepted` says which one did not."""
    error = answer.error
    if error is None or _is_over_time(answer):
        return skipped(f"{prompt} was not answered within {answer.seconds:.0f} s; {accepted}")
    if error.code == _TOO_LONG:
        return ok(f"{prompt} is refused as too long; {accepted}", _told_length(error))
    if answer.refusal is not None:
        advice = "no client can tell that its prompt is too long: report the words to the gateway's makers"
        return todo(f"{prompt} is refused, in words that the gateway does not know; {accepted}", advice, answer.words)
    return todo(f"{prompt} fails: {error.message}", "look at the backend's memory and limits", answer.words)


def _told_length(error: GatewayError) -> Changes:
    """Returns the context that the backend's own words about a prompt that is too long tell."""
    too_long = error.too_long if isinstance(error, BackendError) else None
    limit = too_long.limit if isinstance(too_long, Overflow) else None
    return EMPTY if limit is None else {"context_length": limit}


def _lost(answer: Answer, words: int) -> Finding:
    """Returns the finding about a prompt of which the model, which can repeat a word, does not repeat the first."""
    counted = answer.usage.prompt_tokens if answer.usage is not None else None
    shown = "" if counted is None else f"; the backend counted {counted:,} tokens"
    advice = "raise the context of the backend (Ollama: OLLAMA_CONTEXT_LENGTH), or let the gateway shorten: compress"
    detail = f"the beginning of a prompt of {words:,} words is cut off or forgotten, without an error{shown}"
    return todo(detail, advice, answer.text[:200])


def _is_over_time(answer: Answer) -> bool:
    """Returns whether the gateway's own limit ended an answer, not a 504 of the backend, which has words."""
    return isinstance(answer.error, BackendTimeout) and not answer.error.words


PROBES: Final = (
    Probe(
        "D283",
        "silence",
        "Does a whole answer arrive after a minute of silence?",
        partial(silence, SILENCE_S),
        needs=("D222",),
        slow=True,
        tokens=_SILENCE_TOKENS,
    ),
    Probe(
        "D284",
        "context",
        "Is a long prompt read from its beginning, or refused as too long?",
        context,
        len(SIZES),
        ("D222",),
        slow=True,
        tokens=_CONTEXT_TOKENS,
    ),
)
