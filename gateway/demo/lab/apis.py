"""Lists the APIs that the laboratory serves: their routes, how a request is read, and what can be played on each."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from starlette.routing import Route

from adapters.anthropic_messages.demo.backend import messages_routes
from adapters.anthropic_messages.demo.lab_faults import MESSAGES_LAB_FAULTS
from adapters.anthropic_messages.demo.request import read_request as read_messages
from adapters.gemini.demo.backend import gemini_routes
from adapters.gemini.demo.lab_faults import GEMINI_LAB_FAULTS
from adapters.gemini.demo.request import read_gemini
from adapters.openai_chat.demo.backend import chat_routes
from adapters.openai_chat.demo.lab_faults import CHAT_LAB_FAULTS
from adapters.openai_chat.demo.request import read_chat
from adapters.openai_responses.demo.backend import responses_routes
from adapters.openai_responses.demo.lab_faults import RESPONSES_LAB_FAULTS
from adapters.openai_responses.demo.request import read_request as read_responses
from gateway.core.conversation import JsonObject
from gateway.demo.faults.catalogue import FAULTS
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.playing import Faults
from gateway.demo.lab.edits import LAB_EDITS
from gateway.demo.lab.event import Api, LabEvent
from gateway.demo.player.endpoint import Endpoint, post
from gateway.demo.player.recorder import Recorder
from gateway.demo.scripted_model.dialogue import Dialogue
from gateway.demo.scripted_model.markers import read_options


class LabApi(msgspec.Struct, frozen=True):
    """One API. `paths` are those at which an answer is asked for. (Any: each wire has its own answers.)"""

    title: str
    routes: Callable[[Recorder, Faults], list[Route]]
    paths: re.Pattern[str]
    dialogue: Callable[[JsonObject], Dialogue]
    own: Mapping[str, Fault[Any]]


def _gemini_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes of the API under both of its versions: the SDK for Python asks the newer one."""
    routes = gemini_routes(recorder, faults)
    newer = [
        post(route.path.replace("/v1beta/", "/v1/"), route.endpoint.handler, recorder)
        for route in routes
        if isinstance(route.endpoint, Endpoint) and "POST" in (route.methods or ())
    ]
    return [*routes, *newer]


LAB_APIS: Final[Mapping[Api, LabApi]] = {
    "chat": LabApi(
        "Chat Completions",
        chat_routes,
        re.compile(r"/v1/chat/completions"),
        lambda body: read_chat(body).dialogue,
        CHAT_LAB_FAULTS,
    ),
    "responses": LabApi(
        "Responses",
        responses_routes,
        re.compile(r"/v1/responses"),
        lambda body: read_responses(body).dialogue,
        RESPONSES_LAB_FAULTS,
    ),
    "messages": LabApi(
        "Messages",
        messages_routes,
        re.compile(r"/v1/messages"),
        lambda body: read_messages(body).dialogue,
        MESSAGES_LAB_FAULTS,
    ),
    "gemini": LabApi(
        "Gemini generateContent",
        _gemini_routes,
        re.compile(r"/v1(?:beta)?/models/[^:]+:(?:streamG|g)enerateContent"),
        lambda body: read_gemini(body).dialogue,
        GEMINI_LAB_FAULTS,
    ),
}


def fault_of(event: LabEvent, api: Api, silence: float) -> Fault[Any] | None:
    """Returns what an event plays on an API; None where it changes the model's reply alone. Raises KeyError for an
    event that the API does not have."""
    name, _, options = event.faults[api].format(silence=silence).partition(" ")
    if not name:
        return None
    known = {**FAULTS[api], **LAB_EDITS, **LAB_APIS[api].own}
    return known[name].with_options(read_options(options))
