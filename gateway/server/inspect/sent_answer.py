"""Tells who has sent a request from the inspector's page what its answer says, piece by piece, without secrets."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from gateway.core.answer import AnswerReader
from gateway.core.errors import GatewayError
from gateway.core.events import Event
from gateway.core.secrets import without_secrets
from gateway.inspector.texts import error_text
from gateway.inspector.views.answer import PartKind, Said, said_by
from gateway.server.telemetry.request_context import NO_ERROR, Outcome, RequestContext, RequestObserver

# The pieces of so long a time are told at once.
_PAUSE_S: Final = 0.05
# An answer of which so many bytes are not told yet waits for who looks at it.
_MOST_UNTOLD: Final = 2**20
# So many characters before a piece are looked at for the secret that it may be a part of. No private key is longer.
_CONTEXT: Final = 2**14
# What may be a secret that is not complete yet waits for its end, up to so many characters.
_MOST_HELD: Final = 2**10
_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F)))


class AnswerPiece(msgspec.Struct, frozen=True, omit_defaults=True):
    """More of the part of this number. A call has an `id` and a `name`, and its arguments are the text."""

    part: int
    kind: PartKind
    text: str = ""
    id: str = ""
    name: str = ""


class AnswerEnded(msgspec.Struct, frozen=True):
    """How a request ended, `status` being what its client got, and `code`, `message` and `advice` about its failure.
    `finish` is the reason of the end of the answer, null where that did not end; `changes` counts what the gateway has
    changed, by stage."""

    status: int
    code: str = ""
    message: str = ""
    advice: str = ""
    finish: str | None = None
    changes: str = ""
    ms: float = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Part:
    """One part of an answer. `_text` is the end of it, of which the first `_told` characters were told already."""

    def __init__(self, number: int, said: Said) -> None:
        self.kind = said.kind
        self._begin = AnswerPiece(number, said.kind, "", said.id, said.name)
        self._is_known = False
        self._text = ""
        self._told = 0
        self._new = [said.texts]

    def go_on(self, said: Said) -> None:
        """Adds what was said after an interruption that nobody reads."""
        self._new.append(said.texts)

    @property
    def pieces(self) -> list[str]:
        """The pieces that come now."""
        return self._new[-1]

    def take(self, secrets: Sequence[str], *, whole: bool) -> AnswerPiece | None:
        """Returns what may be told now, without secrets, None: nothing; `whole`: no more will come."""
        text = self._text + "".join([piece for pieces in self._new for piece in pieces])
        for pieces in self._new:
            pieces.clear()
        self._new = self._new[-1:]
        stop = len(text) if whole else max(_settled(text, secrets), self._told)
        # A secret is replaced by as many characters.
        told = without_secrets(text, secrets)[self._told : stop] if stop > self._told else ""
        start = max(0, stop - _CONTEXT)
        self._text, self._told = text[start:], stop - start
        if not told and (self._is_known or self.kind != "call"):
            return None
        self._is_known = True
        id, name = (without_secrets(one, secrets) for one in (self._begin.id, self._begin.name))
        return replace(self._begin, text=told, id=id, name=name)


def _settled(text: str, secrets: Sequence[str]) -> int:
    """Returns how much of a text can be told: not its end, where that may be the beginning of a secret."""
    stop = max(len(text.rstrip(_VISIBLE)), len(text) - _MOST_HELD)
    for secret in secrets:
        if secret.strip(_VISIBLE):
            begun = next((size for size in range(len(secret) - 1, 0, -1) if text.endswith(secret[:size])), 0)
            stop = min(stop, len(text) - begun)
    return stop


class SentAnswer(RequestObserver):
    """The answer to one request. `secrets` returns those that nobody may see."""

    def __init__(self, secrets: Callable[[], Sequence[str]]) -> None:
        self._secrets = secrets
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._untold = 0
        self._streamed = False
        self._reader = AnswerReader()
        # How many of its parts were looked at, and how many say something.
        self._seen = self._count = 0
        # Those of which more may come.
        self._parts: list[_Part] = []
        self._message = self._advice = ""
        self._ended: AnswerEnded | None = None

    async def ready(self, size: int) -> None:
        """Counts bytes of a stream, and waits while there is much in it that nobody has looked at."""
        self._untold += size
        while self._untold > _MOST_UNTOLD and self._streamed and self._ended is None:
            self._taken.clear()
            await self._taken.wait()

    async def told(self) -> AsyncGenerator[Sequence[AnswerPiece] | AnswerEnded, None]:
        """Yields the pieces as they come, those of an answer that is not streamed at its end, and then how it ended."""
        while True:
            await self._news.wait()
            self._news.clear()
            ended = self._ended
            # Of a whole answer that failed, a client gets the failure alone.
            comes = self._streamed or (ended is not None and not ended.code)
            if comes and (pieces := self._take(whole=ended is not None)):
                yield pieces
            if ended is not None:
                yield ended
                return
            await asyncio.sleep(_PAUSE_S)

    def _take(self, *, whole: bool) -> Sequence[AnswerPiece]:
        secrets, parts = self._secrets(), self._gathered()
        self._parts = [] if whole else self._open(parts)
        still_open = {*self._parts}
        found = [part.take(secrets, whole=part not in still_open) for part in parts]
        self._untold = 0
        self._taken.set()
        return [piece for piece in found if piece is not None]

    def _gathered(self) -> list[_Part]:
        """Returns the parts of which something may be told."""
        parts, new = [*self._parts], self._reader.parts[self._seen :]
        self._seen += len(new)
        for said in filter(None, map(said_by, new)):
            if parts and parts[-1].kind == said.kind != "call":
                parts[-1].go_on(said)
            else:
                parts.append(_Part(self._count, said))
                self._count += 1
        return parts

    def _open(self, parts: Sequence[_Part]) -> list[_Part]:
        """Returns those of these parts of which more may come: the last one, unless it is a call, and calls that have
        not ended."""
        # By their lists of pieces, which live as long as the answer: a backend may make thousands of calls.
        calls = {id(call.pieces) for _, call in self._reader.calls.values()}
        calls -= {id(call.pieces) for _, call in self._reader.ends}

        def is_open(part: _Part) -> bool:
            return id(part.pieces) in calls if part.kind == "call" else part is parts[-1]

        return [*filter(is_open, parts)]

    def close(self) -> None:
        """Ends the answer of a request that has ended without saying how."""
        self._end(AnswerEnded(0, message="The request ended without an answer. The log says why."))

    def open_stream(self, context: RequestContext) -> None:
        self._streamed = True

    def events(self, context: RequestContext, events: Sequence[Event]) -> None:
        self._reader.feed(events)
        self._news.set()

    def error(self, context: RequestContext, error: GatewayError) -> None:
        secrets = self._secrets()
        self._message = without_secrets(error.message, secrets)
        self._advice = without_secrets(str(error.extra.get("advice", "")), secrets)

    def conclude(self, context: RequestContext, outcome: Outcome) -> None:
        # It may be the backend's own.
        code = "" if outcome.code == NO_ERROR else without_secrets(outcome.code, self._secrets())
        known = error_text(code)
        usage, finish = context.usage, self._reader.finish
        self._end(
            AnswerEnded(
                outcome.status,
                code,
                self._message or known.cause,
                self._advice or known.remedy,
                finish and finish.reason,
                outcome.changes,
                outcome.ms,
                usage and usage.prompt_tokens,
                usage and usage.completion_tokens,
            )
        )

    def _end(self, ended: AnswerEnded) -> None:
        self._ended = self._ended or ended
        self._taken.set()
        self._news.set()
