"""D27 and D28: fields that shape an answer, and several requests at once; tried only with --slow."""

from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.events import STOPPED_BY
from gateway.diagnostics.doctor.accepting import failure, sends, undeclared
from gateway.diagnostics.doctor.finding import Finding, ok, remark, skipped, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend, Run
from gateway.diagnostics.doctor.question import Answer, Question
from gateway.diagnostics.doctor.requests import CHAT, COUNT, SHORT, request, user
from gateway.diagnostics.doctor.wire_probes import events_in, objects

_SHAPE: Final[Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
_TYPES: Final = {"city": str, "degrees": int}
SCHEMA: Final = request(
    user("Name a city and its temperature today; invent them."),
    response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": _SHAPE, "strict": True}},
)
STOP_WORD: Final = "gamma"
UNSTOPPED: Final = request(user(f'Write exactly this: "alpha beta {STOP_WORD} delta".'))
STOP: Final = Question({**UNSTOPPED.fields, "stop": [STOP_WORD]})
SEED: Final = request(user("Invent a word of twelve letters. Answer with the word alone."), seed=7)
LIMITED: Final = Question({**COUNT.fields, "max_tokens": 8})
LOGPROBS: Final = Question({**SHORT.fields, "stream": True, "logprobs": True})
# A green square of ten pixels.
_PICTURE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HS"
    "ALfKY52fTcuYAAAAAElFTkSuQmCC"
)
IMAGE: Final = request(
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What colour is this picture? Answer with one word."},
            {"type": "image_url", "image_url": {"url": _PICTURE}},
        ],
    }
)
CHOICES: Final = Question(SHORT.fields, added={"n": 2})
AT_ONCE: Final = 4


async def _schema(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(SCHEMA)
    if (failed := _refused(answer)) is not None:
        return failed
    try:
        value = msgspec.json.decode(answer.text)
    except msgspec.DecodeError:
        value = None
    if isinstance(value, dict) and {name: type(inner) for name, inner in value.items()} == _TYPES:
        return ok("the answer has the shape")
    advice = undeclared(backend, "response_format")
    return todo("response_format is ignored: the answer has another shape", advice, answer.text[:200])


async def _stop(backend: ProbedBackend) -> Finding:
    free, stopped = await backend.ask(UNSTOPPED), await backend.ask(STOP)
    if (failed := _refused(stopped)) is not None:
        return failed
    if STOP_WORD not in free.text:
        return skipped("the model did not write the word that was to stop it")
    if STOP_WORD in stopped.text:
        return todo("a stop sequence does not end the answer", undeclared(backend, "stop"), stopped.text[:200])
    if stopped.finish is not None and (stopped.finish.raw or "").startswith(STOPPED_BY):
        return remark("the backend goes on behind it; the gateway ends the answer")
    return ok("the answer ends before it")


async def _seed(backend: ProbedBackend) -> Finding:
    first, second = await backend.ask_at_once([SEED, SEED])
    if (failed := _unsent(backend, "seed") or _refused(first) or _refused(second)) is not None:
        return failed
    if first.text == second.text:
        return ok("two answers are the same")
    return todo("two answers with the same seed differ", "do not rely on seed: few providers promise it")


async def _limit(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(LIMITED)
    if (failed := _unsent(backend, "max_tokens") or _refused(answer)) is not None:
        return failed
    if answer.finish is not None and answer.finish.reason == "length":
        return ok("the answer ends at it")
    return todo("max_tokens does not end the answer", undeclared(backend, "max_tokens"), answer.text[:200])


async def _logprobs(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(LOGPROBS)
    if answer.refusal is not None:
        return skipped(f"the model gives none: {answer.words[:160]}")
    if (failed := failure(answer)) is not None:
        return failed
    if b'"logprob"' in answer.body:
        return ok("they come")
    return todo("logprobs is ignored", undeclared(backend, "logprobs"))


async def _image(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(IMAGE)
    if answer.refusal is not None:
        return skipped(f"the model takes no images: {answer.words[:160]}", {"facts.images": False})
    return failure(answer) or ok("accepted")


async def _choices(backend: ProbedBackend) -> Finding:
    if backend.settings.adapter != CHAT:
        return skipped("only an answer of chat completions is looked into")
    answer = await backend.ask(CHOICES)
    if answer.refusal is not None:
        return skipped(f"the model gives one choice: {answer.words[:160]}")
    choices = {fields.get("index") for path, fields in objects(list(events_in(answer.body))) if path == "[].choices[]"}
    if len(choices) == 2:
        return ok("two choices; clients get one, since the gateway never sends n")
    return failure(answer) or remark(
        "n is ignored; clients get one choice in any case, since the gateway never sends n"
    )


async def _at_once(backend: ProbedBackend) -> Finding:
    answers = await backend.ask_at_once([SHORT] * AT_ONCE)
    failed = [answer for answer in answers if answer.error is not None]
    if not failed:
        return ok(f"{AT_ONCE} answers")
    advice = "set max_concurrent of the backend to what it can serve"
    return todo(f"{len(failed)} of {AT_ONCE} requests at once fail", advice, failed[0].words)


async def _cancel(backend: ProbedBackend) -> Finding:
    (left,) = await backend.ask_at_once([msgspec.structs.replace(COUNT, leave_after=1)])
    if (failed := failure(left)) is not None:
        return failed
    (after,) = await backend.ask_at_once([SHORT])
    if after.error is None:
        return ok("the next request is answered")
    return todo("a cancelled request goes on at the backend", "a proxy may hide that the client left", after.words)


def _refused(answer: Answer) -> Finding | None:
    """Returns the finding of a field that the backend refuses, or of a question that failed."""
    if answer.refusal is not None:
        return todo("the request is refused", "do not send this field to the model", answer.words)
    return failure(answer)


def _unsent(backend: ProbedBackend, field: str) -> Finding | None:
    """Returns the finding of a field that the adapter has no place for."""
    if sends(backend, field):
        return None
    return skipped(f"the adapter does not offer it: it does not send {field}")


def _slow(probe_id: str, name: str, asks: str, run: Run, questions: int = 1, feature: str = "") -> Probe:
    return Probe(probe_id, name, asks, run, questions, ("D222",), feature, slow=True)


PROBES: Final = (
    _slow("D271", "schema", "Does response_format json_schema shape the answer?", _schema, 1, "json_schema"),
    _slow("D272", "stop", "Does a stop sequence end the answer?", _stop, 2, "stop"),
    _slow("D273", "seed", "Do two answers with one seed agree?", _seed, 2, "seed"),
    _slow("D274", "limit", "Does max_tokens end the answer?", _limit, 1, "max_tokens"),
    _slow("D275", "logprobs", "Do logprobs come on request?", _logprobs, 1, "logprobs"),
    _slow("D276", "image", "Is an image accepted?", _image, 1, "images"),
    _slow("D277", "choices", "Does n give several choices?", _choices),
    _slow("D281", "at once", "Are four requests served at once?", _at_once, AT_ONCE),
    _slow("D282", "cancel", "Does a cancelled request make room for the next?", _cancel, 2),
)
