"""Serves a recording from a thread of its own, and records what it lacks: what stands behind the pytest plugin."""

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

import httpx
from starlette.requests import Request

from gateway.recording.files import load_recording, save_recording
from gateway.recording.heads import backend_headers
from gateway.recording.lines import BytesLine, EndLine, HeaderLine, HeadLine, RequestLine, SentLine, data_of
from gateway.recording.matching import Matching, Miss, RecordedRequest, RecordedSide
from gateway.recording.playback import Playback, serve_recording, side_of
from gateway.recording.recording import Interaction, Recording, Step
from gateway.recording.redact.redact import redact
from gateway.registry import DEFAULT_DIALECT
from gateway.server.upstream.transport import gateway_version

_WAIT_S: Final = 40
# Headers of the client that concern its own connection.
_HOP: Final = frozenset(["host", "content-length", "connection", "accept-encoding", "transfer-encoding"])


class RecordedService:
    """A served recording. `base_url` is its address; `requests` are those that came so far."""

    def __init__(self, playback: Playback, loop: asyncio.AbstractEventLoop, recorder: "_Recorder") -> None:
        self._playback = playback
        self._loop = loop
        self._recorder = recorder
        self.base_url = playback.base_url

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        return tuple(self._playback.requests)

    def fail(self, how: str, after: int = 0) -> None:
        """Makes the next response break behind so many reads: `truncated`, `reset` or `stall`. Raises ValueError."""
        self._playback.fail(how, after)

    @property
    def problem(self) -> str:
        """What is wrong with how the recording was used, empty for nothing: requests without a response, and responses
        that nobody asked for."""
        misses = [f"a request had no recorded response: {miss.message}" for miss in self._playback.misses]
        unused = [one.x for one in self._playback.matcher.unused]
        if unused and not self._recorder.recorded:
            numbers = ", ".join(map(str, unused))
            misses.append(f"nobody asked for the recorded responses {numbers} of {self._recorder.path}")
        return "\n".join(misses)


class _Recorder:
    """Asks the upstream for what the recording lacks."""

    def __init__(self, path: Path, side: RecordedSide, upstream: str) -> None:
        self.path = path
        self.recorded: list[Interaction] = []
        self._side = side
        self._upstream = upstream.rstrip("/")

    async def forward(self, asked: RecordedRequest, request: Request) -> Interaction | Miss:
        """Forwards a request, and returns it with its response as it came."""
        try:
            one = await self._forwarded(asked, request)
        except httpx.HTTPError as error:
            return Miss(f"The upstream {self._upstream} gave no whole response ({type(error).__name__}).")
        self.recorded.append(one)
        return one

    async def _forwarded(self, asked: RecordedRequest, request: Request) -> Interaction:
        headers = {name: value for name, value in request.headers.items() if name not in _HOP}
        side, began = side_of(self._side), time.monotonic()
        steps: list[Step] = []
        async with httpx.AsyncClient(timeout=300, trust_env=False, follow_redirects=False) as client:
            url = self._upstream + asked.path
            async with client.stream(asked.method, url, content=asked.body, headers=headers) as answer:
                steps.append(HeadLine(1, side, _ms(began), answer.status_code, backend_headers(answer.headers)))
                steps += [BytesLine(1, side, _ms(began), data_of(data)) async for data in answer.aiter_bytes()]
        return self._interaction(asked, tuple(steps), answer.status_code)

    def _interaction(self, asked: RecordedRequest, steps: tuple[Step, ...], status: int) -> Interaction:
        path, body = asked.path.partition("?")[0], data_of(asked.body)
        sent = SentLine(1, asked.method, path, body=body) if self._side == "backend" else None
        request = RequestLine(1, f"req_{secrets.token_hex(12)}", DEFAULT_DIALECT, asked.method, path, body=body)
        return Interaction(request, sent=sent, steps=steps, end=EndLine(1, status))

    def save(self, before: Sequence[Interaction]) -> None:
        """Writes the file with what was recorded, without secrets."""
        if not self.recorded:
            return
        numbered = [one.numbered(x) for x, one in enumerate((*before, *self.recorded), 1)]
        made = datetime.now(UTC).isoformat(timespec="seconds")
        header = HeaderLine(gateway=gateway_version(), made=made)
        clean = redact(Recording(header).with_interactions(numbered), "none", b"").recording
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_name(f"{self.path.name}.new")
        fresh.unlink(missing_ok=True)
        save_recording(fresh, clean)
        fresh.replace(self.path)


def _ms(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)


@contextmanager
def recorded_service(
    path: Path,
    mode: str = "none",
    side: RecordedSide = "openai",
    match: Matching = "shape",
    speed: float = 0,
    upstream: str | None = None,
) -> Iterator[RecordedService]:
    """Serves the file until the block ends. `mode` is one of `--dragoman-record`; all but `none` need an upstream, the
    base URL of the real service. Raises InvalidRequest for a file that cannot be read, and ValueError without an
    upstream and for another side or way to match."""
    for value, known in ((side, RecordedSide), (match, Matching)):
        if value not in get_args(known):
            raise ValueError(f"{value!r} is none of {', '.join(get_args(known))}")
    records = mode in ("new", "all") or (mode == "once" and not path.exists())
    if records and upstream is None:
        raise ValueError("recording needs the base URL of the real service: @pytest.mark.dragoman(FILE, upstream=URL)")
    recording = Recording() if mode == "all" or (records and not path.exists()) else load_recording(path)
    recorder = _Recorder(path, side, upstream or "")
    service = _Thread(recording, side, match, speed, recorder if records else None)
    with service as playback:
        yield RecordedService(playback, service.loop, recorder)
    recorder.save(recording.interactions())


class _Thread:
    """Runs the server in an event loop of its own, so that the test may block."""

    def __init__(
        self, recording: Recording, side: RecordedSide, match: Matching, speed: float, recorder: _Recorder | None
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self._recording = recording
        self._made_of = (side, match, speed)
        self._recorder = recorder
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._playback: Playback | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Playback:
        self._thread.start()
        self._ready.wait(_WAIT_S)
        if self._playback is None:
            self._thread.join(_WAIT_S)
            raise self._error or TimeoutError("the recording was not served in time")
        return self._playback

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_WAIT_S)

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        except Exception as error:  # noqa: BLE001 (the boundary of the thread: the test gets it)
            self._error = error
        finally:
            self._ready.set()
            self.loop.close()

    async def _serve(self) -> None:
        side, match, speed = self._made_of
        forward = None if self._recorder is None else self._recorder.forward
        async with serve_recording(self._recording, side, match, speed, forward=forward) as playback:
            self._playback = playback
            self._ready.set()
            await self._stop.wait()
