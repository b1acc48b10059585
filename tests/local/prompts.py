"""Defines three tools, questions for them, and checks of a call that need no exact answer."""

import json
from collections.abc import Mapping
from typing import Any, Final


def tool(name: str, description: str, properties: Mapping[str, Any], *required: str) -> Any:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER: Final = tool(
    "get_weather",
    "The weather forecast of a city.",
    {
        "city": {"type": "string", "maxLength": 40},
        "days": {"type": "integer"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
    },
    "city",
)
ADD: Final = tool("add", "Adds two numbers.", {"a": {"type": "number"}, "b": {"type": "number"}}, "a", "b")
SEARCH: Final = tool(
    "search_files",
    "Searches the files of the project for a text.",
    {"text": {"type": "string", "maxLength": 60}, "whole_words": {"type": "boolean"}},
    "text",
    "whole_words",
)
TOOLS: Final = (WEATHER, ADD, SEARCH)
SCHEMAS: Final[Mapping[str, Any]] = {each["function"]["name"]: each["function"]["parameters"] for each in TOOLS}

PROMPTS: Final = (
    "What is the weather in Paris for the next 3 days?",
    "Is it raining in Tokyo? Use celsius.",
    "I travel to New York tomorrow. Do I need a coat?",
    "北京今天的天气怎么样？",
    "请告诉我上海未来三天的天气，用摄氏度。",
    "What is 17 plus 25?",
    "Add 3.5 and -2.",
    "请计算 128 加 256 等于多少。",
    "Where is the function parse_path defined?",
    'Find every file that mentions "</tool_call>" in its text.',
    "在项目里搜索“超时”这个词。",
    "Hello! Who are you?",
)

KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def check_call(name: str, arguments: str) -> None:
    """The call is of a declared tool, and its arguments are what that tool's schema asks for."""
    schema = SCHEMAS[name]
    given = json.loads(arguments)
    assert isinstance(given, dict)
    assert set(schema["required"]) <= set(given) <= set(schema["properties"])
    for key, value in given.items():
        wanted = schema["properties"][key]
        assert isinstance(value, KINDS[wanted["type"]]), f"{key} is {value!r}"
        assert isinstance(value, bool) == (wanted["type"] == "boolean")
        assert value in wanted.get("enum", [value])
        assert not isinstance(value, str) or len(value) <= wanted.get("maxLength", len(value))
