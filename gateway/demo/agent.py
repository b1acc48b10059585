"""The demo backend that speaks the Warp agent wire: protobuf in, base64 protobuf in server-sent events out."""

from collections.abc import Iterable, Mapping
from typing import Final

from aiohttp import web
from google.protobuf.message import DecodeError

from adapters.warp import multi_agent_pb2 as pb
from gateway.demo.agent_read import AgentRequest, broken_rule, read_agent, summarize
from gateway.demo.agent_script import scripted_steps
from gateway.demo.credentials import Credentials
from gateway.demo.framing import Knobs, read_knobs, write_frames
from gateway.demo.markers import read_options
from gateway.demo.playback import Response, json_answer, play
from gateway.demo.recorder import Recorder
from gateway.demo.scenario import Scenario
from gateway.demo.scenarios import SCENARIOS
from gateway.demo.steps import Stage, Step

STREAM: Final = {"content-type": "text/event-stream;charset=utf-8", "cache-control": "no-cache"}
PROTOBUF: Final = "application/x-protobuf"
_LARGEST_BODY: Final = 64 * 1024 * 1024


def agent_app(recorder: Recorder) -> web.Application:
    """The routes; each also below `/scenario/NAME`, where NAME may be followed by knobs: `/scenario/stall,chunk=1`."""
    backend = _Agent(recorder)
    app = web.Application(client_max_size=_LARGEST_BODY)
    for prefix in ("", "/scenario/{scenario}"):
        app.router.add_post(f"{prefix}/ai/multi-agent", backend.turn)
        app.router.add_post(f"{prefix}/proxy/token", backend.token)
        app.router.add_post(f"{prefix}/client/login", backend.login)
    app.router.add_post("/scenario/{scenario}", backend.turn)
    app.router.add_get("/__sim/requests", backend.requests)
    app.router.add_get("/__sim/scenarios", backend.scenarios)
    return app


class _Agent:
    """The handlers and what they share: what was recorded, the tokens, how often each scenario was asked for."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._credentials = Credentials()
        self._asked: dict[str, int] = {}
        self._answers = 0

    async def turn(self, request: web.Request) -> web.StreamResponse:
        async with self._recorder.watch():
            body = await request.read()
            self._recorder.record(request, body, summarize)
            try:
                decoded = pb.Request.FromString(body)
            except DecodeError as error:
                return _refusal(400, f"the body is no Request: {error}")
            if request.content_type != PROTOBUF:
                return _refusal(415, f"the content type must be {PROTOBUF}")
            if (broken := broken_rule(decoded)) is not None:
                return _refusal(400, broken)
            return await self._answer(request, read_agent(decoded))

    async def _answer(self, request: web.Request, asked: AgentRequest) -> web.StreamResponse:
        name, options = _wanted(request, asked)
        if name and name not in SCENARIOS:
            return _refusal(400, f"there is no scenario {name!r}; there are {', '.join(SCENARIOS)}")
        try:
            knobs = read_knobs(options)
        except ValueError as error:
            return _refusal(400, f"unusable knob: {error}")
        scenario = SCENARIOS.get(name)
        if scenario is not None and (answer := self._instead(name, scenario, request.headers)) is not None:
            return await play(request, answer)
        self._answers += 1
        steps = _steps(scenario, asked)
        return await _perform(request, steps, Stage(asked, self._answers), knobs)

    def _instead(self, name: str, scenario: Scenario, headers: Mapping[str, str]) -> Response | None:
        if scenario.needs_refresh and not self._credentials.accepts(headers.get("authorization", "")):
            return Response((b'{"error":"expired token"}',), 401, {"content-type": "application/json"})
        count = self._asked.get(name, 0)
        self._asked[name] = count + 1
        rotation = (*scenario.instead, None) if scenario.turns else scenario.instead
        return rotation[count % len(rotation)]

    async def token(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        # The form holds a refresh token, which nobody needs to read again.
        self._recorder.record(request, b"", lambda _: {"grant_type": str(form.get("grant_type"))})
        status, answer = self._credentials.exchange(str(form.get("grant_type")), str(form.get("refresh_token", "")))
        return json_answer(answer, status)

    async def login(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=204 if "content-length" in request.headers else 411)

    async def requests(self, request: web.Request) -> web.StreamResponse:
        return json_answer(self._recorder.show())

    async def scenarios(self, request: web.Request) -> web.StreamResponse:
        return json_answer({name: scenario.about for name, scenario in SCENARIOS.items()})


def _wanted(request: web.Request, asked: AgentRequest) -> tuple[str, dict[str, str]]:
    """The scenario's name and the knobs: the marker's, else the path's; query parameters add knobs."""
    path = request.match_info.get("scenario", "")
    name, _, knobs = path.partition(",")
    options = read_options(knobs)
    if asked.scenario is not None:
        name, options = asked.scenario.name, {**options, **asked.scenario.options}
    return name.replace("-", "_"), {**options, **request.query}


def _steps(scenario: Scenario | None, asked: AgentRequest) -> Iterable[Step]:
    rounds = len(asked.dialogue.rounds)
    if scenario is not None and rounds < len(scenario.turns):
        return scenario.turns[rounds]
    return scripted_steps(asked)


async def _perform(request: web.Request, steps: Iterable[Step], stage: Stage, knobs: Knobs) -> web.StreamResponse:
    frames = (frame for step in steps for frame in step(stage))
    return await play(request, Response(write_frames(frames, knobs), 200, STREAM), knobs.delay_ms / 1000)


def _refusal(status: int, message: str) -> web.Response:
    return json_answer({"error": message}, status)
