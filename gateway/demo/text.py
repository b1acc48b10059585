"""The demo backend that speaks llama.cpp's completion wire: one prompt in, pieces of text out."""

from aiohttp import web

from gateway.demo.markers import find_marker
from gateway.demo.playback import Response, json_answer, play
from gateway.demo.recorder import Recorder
from gateway.demo.text_faults import FAULTS
from gateway.demo.text_read import TextRequest, read_completion, shown
from gateway.demo.text_wire import Written, error_body, frame, frames, last_event, write_answer

_LARGEST_BODY = 64 * 1024 * 1024


def text_app(recorder: Recorder) -> web.Application:
    """The routes: completion, health and what was recorded."""

    async def completion(request: web.Request) -> web.StreamResponse:
        async with recorder.watch():
            return await _completion(request, recorder)

    async def health(request: web.Request) -> web.StreamResponse:
        return json_answer({"status": "ok"})

    async def requests(request: web.Request) -> web.StreamResponse:
        return json_answer(recorder.show())

    app = web.Application(client_max_size=_LARGEST_BODY)
    app.router.add_post("/completion", completion)
    app.router.add_get("/health", health)
    app.router.add_get("/__demo/requests", requests)
    return app


async def _completion(request: web.Request, recorder: Recorder) -> web.StreamResponse:
    body = await request.read()
    recorder.record(request, body, shown)
    try:
        asked = read_completion(body)
    except ValueError as error:
        return _refusal(f"the body is no completion request: {error}")
    answer = write_answer(asked)
    marker = find_marker(asked.asked, "demo")
    if marker is not None and marker.name not in FAULTS:
        return _refusal(f"there is no fault {marker.name!r}; there are {', '.join(FAULTS)}")
    if marker is not None:
        return await play(request, FAULTS[marker.name][1](answer, marker.options))
    return await _answer(request, asked, answer)


async def _answer(request: web.Request, asked: TextRequest, answer: Written) -> web.StreamResponse:
    if not asked.completion.stream:
        return json_answer(last_event(answer, answer.text))
    return await play(request, Response([*frames(answer), frame(last_event(answer))]))


def _refusal(message: str) -> web.Response:
    return json_answer(error_body(400, message, "invalid_request_error"), 400)
