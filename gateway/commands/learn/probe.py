"""Asks a gRPC service of which nothing was recorded: for its schema, and for a few short answers."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from adapters.proto.learn import (
    GRPC,
    GuessedRequest,
    RecordedExchange,
    guess_request,
    guessed_body,
    request_headers,
)
from gateway.commands.learn.exchanges import REQUEST, TRAILERS
from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import BackendError, InvalidRequest
from gateway.core.events import Reason
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_text
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.registry import load_dialect
from gateway.server.upstream.fd_limits import last_for_backends
from gateway.server.upstream.http.origin import read_url
from gateway.server.upstream.schema_reflection import fetch_schema
from gateway.server.upstream.transport import Transport, encode_http2_head

_TIMEOUT_S: Final = 120.0
_LARGEST: Final = 4 << 20
_OK: Final = "0"
_MOST_TOKENS: Final = 64


class Question(msgspec.Struct, frozen=True):
    """One request of a probe. `planted` is a word that the answer must have; empty: none is known. `end` is
    that which the request asks for."""

    name: str
    text: str
    max_tokens: int
    planted: str = ""
    end: Reason = "stop"


# Two answers with a known word and one that a limit cuts off.
QUESTIONS: Final = (
    Question("word", "Answer with this word alone: marmalade", _MOST_TOKENS, "marmalade"),
    Question("other_word", "Answer with this word alone: telescope", _MOST_TOKENS, "telescope"),
    Question("cut_off", "Count from one to fifty in words.", 8, end="length"),
)


class Probed(msgspec.Struct, frozen=True):
    """The schema of the service, the request that was guessed, and the exchanges."""

    descriptors: DescriptorSet
    guess: GuessedRequest
    exchanges: tuple[RecordedExchange, ...]


def cost_text(url: str, model: str) -> str:
    """Returns what a probe sends, and about how many tokens that is."""
    asked = sum(estimate_text(question.text) for question in QUESTIONS)
    most = sum(question.max_tokens for question in QUESTIONS)
    return (
        f"This asks {url} for its schema (server reflection, no tokens), and then sends up to {len(QUESTIONS)}"
        f" requests for the model {model!r}:\nabout {asked} tokens of prompts, and at most {most} tokens of answers if"
        " the service has a field for a limit.\n"
    )


def may_send(yes: bool) -> bool:
    """Asks whether to send; `yes` answers it. Raises InvalidRequest where nobody can be asked."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidRequest("nothing was sent: this is no terminal, and without --yes it asks first")
    return input("Send them? [y/N] ").strip().lower() in ("y", "yes")


def probe(url: str, model: str, method: str | None, key_env: str | None, yes: bool) -> Probed | None:
    """Returns the exchanges with a service, after it was allowed; None: it was not. Raises SettingsError and
    InvalidRequest."""
    print(cost_text(url, model), end="")
    if not may_send(yes):
        return None
    headers = _credential(key_env)
    descriptors = asyncio.run(fetch_schema(url, headers)).descriptors
    guess = guess_request(descriptors, method)
    if not guess.limits:
        print(f"{guess.method} has no field that is named like a limit, so that the answers may be long.")
        if not may_send(yes):
            return None
    exchanges = asyncio.run(_ask_all(url, model, descriptors, guess, headers))
    return Probed(descriptors, guess, tuple(exchanges))


def _credential(key_env: str | None) -> Mapping[str, str]:
    if key_env is None:
        return {}
    key = os.environ.get(key_env)
    if not key:
        raise InvalidRequest(f"--api-key-env: there is no variable {key_env}")
    return {"authorization": f"Bearer {key}"}


async def _ask_all(
    url: str, model: str, descriptors: DescriptorSet, guess: GuessedRequest, headers: Mapping[str, str]
) -> list[RecordedExchange]:
    """Asks one question after the other. Raises InvalidRequest for the first one that is refused."""
    found: list[RecordedExchange] = []
    try:
        async with Transport(_LARGEST, last_for_backends()) as transport:
            for question in QUESTIONS:
                exchange = _exchange(question, model, descriptors, guess)
                found.append(await _ask(transport, url, descriptors, guess.method, exchange, headers))
    except BackendError as error:
        raise InvalidRequest(f"{url}: {error.message}") from error
    return found


def question_document(question: Question, model: str) -> dict[str, Json]:
    """Returns the request of a client that asks this question."""
    messages: list[Json] = [{"role": "user", "content": question.text}]
    return {"model": model, "messages": messages, "max_tokens": question.max_tokens}


def _exchange(question: Question, model: str, descriptors: DescriptorSet, guess: GuessedRequest) -> RecordedExchange:
    document = Document(question_document(question, model))
    conversation = load_dialect().decode(document, RequestHead("")).conversation
    exchange = RecordedExchange(
        question.name, conversation, Policy(), b"", b"", planted=question.planted, asked_end=question.end
    )
    return msgspec.structs.replace(exchange, body=guessed_body(descriptors, GRPC, guess, exchange))


async def _ask(
    transport: Transport,
    url: str,
    descriptors: DescriptorSet,
    method: str,
    exchange: RecordedExchange,
    headers: Mapping[str, str],
) -> RecordedExchange:
    path, own = request_headers(descriptors, GRPC, method)
    head = encode_http2_head("POST", read_url(url.rstrip("/") + path), {**own, **headers})
    response = await transport.send(head, exchange.body, _TIMEOUT_S)
    body = bytearray()
    try:
        while data := await response.read():
            body += data
    finally:
        response.close()
    told = {**response.headers, **response.trailers}
    status, message = told.get("grpc-status", ""), told.get("grpc-message", "")
    if response.status != 200 or status != _OK:
        raise InvalidRequest(
            f"{url}: it refuses the request {exchange.name!r} to {method}: grpc-status {status or 'none'}"
            f"{f' {message}' if message else ''}. Record exchanges of a client that it takes, and name their folder."
        )
    return msgspec.structs.replace(exchange, answer=bytes(body), trailers={"grpc-status": status})


def save_exchanges(folder: Path, model: str, exchanges: Sequence[RecordedExchange]) -> None:
    """Writes the files of each exchange, which `dragoman map learn` reads."""
    for question, exchange in zip(QUESTIONS, exchanges, strict=True):
        files = folder / exchange.name
        files.mkdir(parents=True, exist_ok=True)
        (files / REQUEST).write_text(json.dumps(question_document(question, model)), encoding="utf-8")
        (files / "body.bin").write_bytes(exchange.body)
        (files / "answer.bin").write_bytes(exchange.answer)
        trailers = "".join(f"{name}: {value}\n" for name, value in exchange.trailers.items())
        (files / TRAILERS).write_text(trailers, encoding="utf-8")
