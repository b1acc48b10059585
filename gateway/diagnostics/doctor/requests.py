"""The tools and turns that questions are made of, and the questions that several probes share."""

from typing import Final

from gateway.core.conversation import Json
from gateway.diagnostics.doctor.question import Question

# The dialect of the questions, and the adapter that passes it on.
CHAT: Final = "openai_chat"
# The field by which each answer is bounded, and its newer name.
BOUND: Final = "max_tokens"
NEWER_BOUND: Final = "max_completion_tokens"
# Enough for a model that thinks before a short answer.
MOST_TOKENS: Final = 1024


def function(name: str, description: str, *required: str) -> Json:
    """Returns a tool whose parameters are texts."""
    properties: Json = {one: {"type": "string"} for one in required}
    parameters: Json = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER: Final = function("get_weather", "Tells the weather of a city.", "city")
CLOCK: Final = function("get_time", "Tells the time in a city.", "city")
USER: Final = function("get_current_user", "Tells who the current user is.")


def user(text: str) -> Json:
    """Returns a turn of the user."""
    return {"role": "user", "content": text}


def system(text: str, role: str = "system") -> Json:
    """Returns a turn of the system."""
    return {"role": role, "content": text}


def assistant(text: str) -> Json:
    """Returns an answer without calls."""
    return {"role": "assistant", "content": text}


def calling(*calls: tuple[str, str, str]) -> dict[str, Json]:
    """Returns an answer that only calls tools, each by its id, name and arguments."""
    listed: list[Json] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def result(call_id: str, content: Json) -> Json:
    """Returns the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def paris(call_id: str = "call_a1", name: str = "get_weather") -> list[Json]:
    """Returns a question, the call of a tool for it, and the result."""
    return [
        user("What is the weather in Paris?"),
        calling((call_id, name, '{"city":"Paris"}')),
        result(call_id, "sunny, 21 degrees"),
    ]


def request(*messages: Json, tools: tuple[Json, ...] = (), as_is: bool = False, **fields: Json) -> Question:
    """Returns the question of these messages, with a bound; it is streamed, as most clients want it."""
    offered: dict[str, Json] = {"tools": list(tools)} if tools else {}
    return Question({"messages": list(messages), "stream": True, BOUND: MOST_TOKENS, **offered, **fields}, as_is)


SHORT: Final = request(user("Say hello in one short sentence."), stream=False)
COUNT: Final = request(user("Count from 1 to 40 in digits, with a space between, and write nothing else."))
ASKED: Final = user("What is the weather in Paris? Use get_weather.")
ONE: Final = request(ASKED, tools=(WEATHER,))
