"""Serves the Warp agent wire: protobuf requests, and responses of base64 protobuf in server-sent events."""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from google.protobuf.message import DecodeError
from starlette.requests import Request
from starlette.routing import Route

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo.framing_options import FramingOptions, read_framing_options, write_frames
from adapters.warp.demo.request import AgentRequest, broken_rule, read_agent, summarize
from adapters.warp.demo.scenario import WarpScenario
from adapters.warp.demo.scenarios import SCENARIOS
from adapters.warp.demo.script import scripted_steps
from adapters.warp.demo.steps import ScenarioState, Step
from adapters.warp.demo.token_exchange import TokenExchange
from gateway.core.conversation import Json
from gateway.demo.faults.playing import Faults, Steps, respond
from gateway.demo.player.endpoint import Refused, get, post, read_body
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder
from gateway.demo.scripted_model.dialogue import Model
from gateway.demo.scripted_model.markers import read_options

STREAM: Final = {"content-type": "text/event-stream;charset=utf-8", "cache-control": "no-cache"}
PROTOBUF: Final = "application/x-protobuf"
FORM: Final = "application/x-www-form-urlencoded"


def agent_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes. Each also exists below `/scenario/NAME`, where options may follow NAME:
    `/scenario/stall,chunk=1`."""
    backend = _Agent(recorder, faults)
    routes = [get("/__sim/requests", recorder.as_json), get("/__sim/scenarios", _scenarios)]
    for prefix in ("", "/scenario/{scenario}"):
        routes.append(post(f"{prefix}/ai/multi-agent", backend.turn, recorder))
        routes.append(post(f"{prefix}/proxy/token", backend.token))
        routes.append(post(f"{prefix}/client/login", backend.login))
    return [*routes, post("/scenario/{scenario}", backend.turn, recorder)]


class _Agent:
    """The handlers and their shared state: recorded requests, tokens, and the number of requests for each scenario."""

    def __init__(self, recorder: Recorder, faults: Faults) -> None:
        self._recorder = recorder
        self._faults = faults
        self._token_exchange = TokenExchange()
        self._attempts: dict[str, int] = {}
        self._answers = 0

    async def turn(self, request: Request) -> Response:
        body = await read_body(request)
        self._recorder.record(request, body, summarize)
        try:
            decoded = pb.Request.FromString(body)
        except DecodeError as error:
            return _refusal(400, f"the body is not a Request: {error}")
        if _content_type(request) != PROTOBUF:
            return _refusal(415, f"the content type must be {PROTOBUF}")
        if (broken := broken_rule(decoded)) is not None:
            return _refusal(400, broken)
        # What a fault edits of a request are fields of JSON: this wire has no such fault.
        steps = Steps(
            read=lambda _: read_agent(decoded),
            question=lambda asked: asked.marked_question,
            answer=lambda asked, model: self._answer(request, asked, model),
            respond=lambda _, response: response,
        )
        try:
            return respond(steps, self._faults, {})
        except Refused as error:
            return _refusal(400, str(error))

    def _answer(self, request: Request, agent_request: AgentRequest, model: Model) -> Response:
        name, options = _wanted(request, agent_request)
        if name and name not in SCENARIOS:
            return _refusal(400, f"there is no scenario {name!r}; there are {', '.join(SCENARIOS)}")
        try:
            framing = read_framing_options(options)
        except ValueError as error:
            return _refusal(400, f"invalid option: {error}")
        scenario = SCENARIOS.get(name)
        if scenario is not None and (answer := self._instead(name, scenario, request.headers)) is not None:
            return answer
        self._answers += 1
        steps = _steps(scenario, agent_request, model)
        return _performed(steps, ScenarioState(agent_request, self._answers), framing)

    def _instead(self, name: str, scenario: WarpScenario, headers: Mapping[str, str]) -> Response | None:
        if scenario.needs_refresh and not self._token_exchange.accepts(headers.get("authorization", "")):
            return Response((b'{"error":"expired token"}',), 401, {"content-type": "application/json"})
        count = self._attempts.get(name, 0)
        self._attempts[name] = count + 1
        rotation = (*scenario.instead, None) if scenario.turns else scenario.instead
        return rotation[count % len(rotation)]

    async def token(self, request: Request) -> Response:
        body = await read_body(request)
        form = _first(parse_qsl(body.decode(), keep_blank_values=True)) if _content_type(request) == FORM else {}
        # The form holds a refresh token, so that it is not recorded.
        self._recorder.record(request, b"", lambda _: {"grant_type": form.get("grant_type", "None")})
        status, answer = self._token_exchange.exchange(form.get("grant_type", ""), form.get("refresh_token", ""))
        return json_answer(answer, status)

    async def login(self, request: Request) -> Response:
        return Response((), 204 if "content-length" in request.headers else 411, {})


def _scenarios() -> Json:
    return {name: scenario.about for name, scenario in SCENARIOS.items()}


def _wanted(request: Request, agent_request: AgentRequest) -> tuple[str, dict[str, str]]:
    """Returns the scenario's name and the options: the marker's, else the path's; query parameters add options."""
    path = request.path_params.get("scenario", "")
    name, _, written = path.partition(",")
    options = read_options(written)
    if agent_request.scenario is not None:
        name, options = agent_request.scenario.name, {**options, **agent_request.scenario.options}
    return name.replace("-", "_"), {**options, **_first(request.query_params.multi_items())}


def _steps(scenario: WarpScenario | None, agent_request: AgentRequest, model: Model) -> Iterable[Step]:
    rounds = len(agent_request.dialogue.rounds)
    if scenario is not None and rounds < len(scenario.turns):
        return scenario.turns[rounds]
    return scripted_steps(agent_request, model)


def _performed(steps: Iterable[Step], state: ScenarioState, framing: FramingOptions) -> Response:
    frames = (frame for step in steps for frame in step(state))
    return Response(write_frames(frames, framing), 200, STREAM, delay=framing.delay_ms / 1000)


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _first(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Maps the fields by name; the first of several fields with the same name counts."""
    found: dict[str, str] = {}
    for name, value in fields:
        found.setdefault(name, value)
    return found


def _refusal(status: int, message: str) -> Response:
    return json_answer({"error": message}, status)
