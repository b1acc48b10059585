"""Reads recorded exchanges: the requests of a recording, or folders with the files of one exchange each."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from adapters.proto.learn import KnownAnswer, KnownError, RecordedExchange
from gateway.core.answer import Answer, read_answer
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, GatewayError, InvalidRequest
from gateway.core.events import Event, ResponseStart
from gateway.core.policy import Policy
from gateway.diagnostics.saved_dialect import saved_dialect
from gateway.dialect import RequestHead
from gateway.dialects.document import read_saved
from gateway.recording.files import load_recording
from gateway.recording.offline_run import OfflineRun, run_offline
from gateway.recording.recording import Interaction
from gateway.registry import DEFAULT_DIALECT, load_adapter
from gateway.settings import BackendSettings, Settings

REQUEST: Final = "request.json"
SENT: Final = "body"
ANSWER: Final = "answer"
EXPECTED: Final = "expected.json"
TRAILERS: Final = "trailers.txt"
_BODIES: Final = (".bin", ".hex", ".json")
_ERRORS: Final = range(400, 600)
_MAX_EVENT: Final = 64 << 20


class ExchangeFiles(msgspec.Struct, frozen=True):
    """One exchange as it was recorded. `method` and `carrier` are those that its head names; None: nothing does.
    `sent_json` and `answer_json`: the body is the JSON form of its messages, without a carrier, in the `folder`."""

    exchange: RecordedExchange
    method: str | None = None
    carrier: str | None = None
    sent_json: bool = False
    answer_json: bool = False
    folder: Path = Path()


def read_exchanges(paths: Sequence[Path], settings: Settings | None) -> list[ExchangeFiles]:
    """Returns the exchanges in recordings, in folders of one exchange, and in folders of such folders. Raises
    InvalidRequest for a path that holds none, and RecordingError."""
    return [found for path in paths for found in (_of_folder(path) if path.is_dir() else _of_recording(path, settings))]


def _of_folder(path: Path) -> Iterator[ExchangeFiles]:
    if (path / REQUEST).exists():
        yield _of_files(path)
        return
    below = sorted(one for one in path.iterdir() if (one / REQUEST).exists())
    if not below:
        raise InvalidRequest(f"{path}: there is no {REQUEST} in it, and none in a folder of it")
    yield from map(_of_files, below)


def _of_files(path: Path) -> ExchangeFiles:
    conversation = _conversation(path / REQUEST)
    body, sent_json = _body(path, SENT)
    answer, answer_json = _body(path, ANSWER)
    trailers = _trailers(path / TRAILERS)
    known = _known(path / EXPECTED, conversation)
    exchange = RecordedExchange(path.name, conversation, Policy(), body, answer, trailers, known)
    return ExchangeFiles(exchange, sent_json=sent_json, answer_json=answer_json, folder=path)


def _conversation(path: Path) -> Conversation:
    saved = path.read_bytes()
    try:
        dialect = saved_dialect(saved)
        document = read_saved(saved, dialect.paths.param("messages"))
        document.fields.setdefault("model", "")
        return dialect.decode(document, RequestHead("")).conversation
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.message}") from error


def _body(path: Path, name: str) -> tuple[bytes, bool]:
    """Returns a body, and whether it is JSON."""
    files = [file for suffix in _BODIES if (file := path / f"{name}{suffix}").exists()]
    if len(files) != 1:
        expected = ", ".join(f"{name}{suffix}" for suffix in _BODIES)
        raise InvalidRequest(f"{path}: it must have one of {expected}; it has {len(files)}")
    data = files[0].read_bytes()
    if files[0].suffix != ".hex":
        return data, files[0].suffix == ".json"
    try:
        return bytes.fromhex(data.decode("ascii", "replace")), False
    except ValueError as error:
        raise InvalidRequest(f"{files[0]}: it is not text of pairs of hexadecimal digits") from error


def _trailers(path: Path) -> Mapping[str, str]:
    if not path.exists():
        return {}
    fields = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {name.strip().lower(): value.strip() for name, _, value in fields}


def _known(path: Path, conversation: Conversation) -> KnownAnswer | None:
    """Returns the answer in a file: a chat completion, its stream, or an error, whatever the dialect of the request.
    Raises InvalidRequest."""
    if not path.exists():
        return None
    decoder = load_adapter(DEFAULT_DIALECT, BackendSettings(DEFAULT_DIALECT, ""), _MAX_EVENT).decoder(conversation)
    try:
        data = path.read_bytes()
        events = [*decoder.feed(data), *decoder.close()]
    except BackendError as error:
        if (known := _known_error(data)) is not None:
            return KnownAnswer(error=known)
        raise InvalidRequest(f"{path}: it is no answer of chat completions: {error.message}") from error
    start = next((event for event in events if isinstance(event, ResponseStart)), ResponseStart())
    return msgspec.structs.replace(_told(events), id=start.id, model=start.model)


def _known_error(data: bytes) -> KnownError | None:
    """Returns the error of OpenAI's form in a file, with the status beside it, or else a number that is its code; None:
    it is no error. A number is no word for an error."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, dict):
        return None
    status, code = found.get("status"), str(error.get("code") or "")
    number = int(code) if code.isdecimal() else 0
    told = status if isinstance(status, int) else number if number in _ERRORS else 0
    return KnownError(str(error.get("message") or ""), told, "" if number else code)


def _told(events: Sequence[Event]) -> KnownAnswer:
    answer: Answer = read_answer(events)
    usage = None if answer.usage is None or answer.usage.estimated else answer.usage
    reason = None if answer.finish is None else answer.finish.reason
    return KnownAnswer(answer.text, answer.reasoning, tuple(call.block for call in answer.calls), reason, usage)


def _of_recording(path: Path, settings: Settings | None) -> Iterator[ExchangeFiles]:
    found = [
        one for interaction in load_recording(path).interactions() if (one := _of_interaction(interaction, settings))
    ]
    if not found:
        raise InvalidRequest(f"{path}: no request in it has both its bodies")
    yield from found


def _of_interaction(interaction: Interaction, settings: Settings | None) -> ExchangeFiles | None:
    """Returns a recorded request, with what the recorded route makes of the response as the answer that is known."""
    sent, head = interaction.sent, interaction.head
    if sent is None or sent.body is None or head is None or interaction.gaps or interaction.body is None:
        return None
    try:
        run = run_offline(interaction, settings)
    except GatewayError:
        return None
    if run.conversation is None or run.exchange is None:
        return None
    route = interaction.route
    named = run.conversation if route is None or not route.name else _named(run.conversation, route.name)
    trailers = {} if interaction.close is None else dict(interaction.close.trailers)
    answer = b"".join(read.data.content for read in interaction.reads)
    exchange = RecordedExchange(
        interaction.request.id, named, Policy(), sent.body.content, answer, trailers, _of_run(run)
    )
    carrier = _CARRIERS.get(sent.headers.get("content-type", ""))
    return ExchangeFiles(exchange, sent.path.lstrip("/") or None, "grpc" if sent.http2 else carrier)


_CARRIERS: Final = {
    "application/grpc+proto": "grpc",
    "application/grpc": "grpc",
    "application/grpc-web+proto": "grpc_web",
    "application/grpc-web-text+proto": "grpc_web_text",
    "application/connect+proto": "connect",
    "application/proto": "connect",
}


def _named(conversation: Conversation, model: str) -> Conversation:
    return msgspec.structs.replace(conversation, model=model)


def _of_run(run: OfflineRun) -> KnownAnswer:
    if run.error is not None:
        return KnownAnswer(error=KnownError(run.error.message, run.error.status, run.error.code or ""))
    return _told([event for events in run.events for event in events])
