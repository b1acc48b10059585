"""The laboratory's model: which tool it calls, with what, and when."""

import json
from pathlib import PurePosixPath
from typing import Final

import pytest

from gateway.core.conversation import Json, JsonObject
from gateway.demo.lab.model import (
    ANSWER,
    CUT_NOTES,
    FIRST_WORD,
    LAST_WORD,
    NOTES,
    PICTURE,
    PROMPT,
    LabModel,
    arguments_of,
    with_arguments,
)
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result

FOLDER: Final = PurePosixPath("/tmp/lab")
TEXT: Final[Json] = {"type": "string"}


def tool(name: str, **parameters: Json) -> OfferedTool:
    schema: JsonObject = {"type": "object", "properties": parameters, "required": list(parameters)}
    return OfferedTool(name, "", schema)


SHELL: Final = (tool("bash", command=TEXT), tool("run_shell_command", command=TEXT), tool("web_fetch", url=TEXT))
WRITER: Final = tool("write_file", path=TEXT, content=TEXT)


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        (tool("read_file", path=TEXT), {"path": f"{FOLDER}/{NOTES}"}),
        (tool("Read", file_path=TEXT), {"file_path": f"{FOLDER}/{NOTES}"}),
        (tool("read", filePath=TEXT), {"filePath": f"{FOLDER}/{NOTES}"}),
        (tool("read_file", absolute_path={"type": "STRING"}), {"absolute_path": f"{FOLDER}/{NOTES}"}),
        (tool("view_image", path=TEXT), {"path": f"{FOLDER}/{PICTURE}"}),
        (
            tool("read_file", path=TEXT, limit={"type": "integer", "minimum": 1}),
            {"limit": 1, "path": f"{FOLDER}/{NOTES}"},
        ),
    ],
)
def test_a_tool_that_reads_a_file_is_called_with_its_path_last(offered: OfferedTool, expected: JsonObject) -> None:
    reply = LabModel(FOLDER)(Dialogue(PROMPT, (*SHELL, WRITER, offered)))
    assert [(call.name, list(call.arguments.items())) for call in reply.calls] == [
        (offered.name, list(expected.items()))
    ]


@pytest.mark.parametrize(
    "dialogue",
    [
        Dialogue(PROMPT),
        Dialogue(PROMPT, (*SHELL, WRITER)),
        Dialogue(PROMPT, (tool("read_file", paths={"type": "array"}),)),
        Dialogue(PROMPT, (tool("read_file", path=TEXT),), choice="none"),
        Dialogue(PROMPT, (tool("read_file", path=TEXT),), ((Result("read_file", "text"),),)),
        Dialogue("Summarise the conversation.", (tool("read_file", path=TEXT),)),
    ],
    ids=["no tool", "no reading tool", "no path", "no choice", "a result", "another question"],
)
def test_in_all_other_cases_it_answers(dialogue: Dialogue) -> None:
    reply = LabModel(FOLDER)(dialogue)
    assert (reply.text, reply.calls) == (ANSWER, ())


def test_cut_arguments_name_a_file_that_is_there() -> None:
    reply = LabModel(FOLDER)(Dialogue(PROMPT, (tool("read_file", path=TEXT),)))
    written = arguments_of(reply)
    cut = arguments_of(with_arguments(reply, written[: -len('.md"}')]))
    assert json.loads(f'{cut}"}}') == {"path": f"{FOLDER}/{CUT_NOTES}"}


def test_its_words_stand_at_the_ends_of_its_answer_alone() -> None:
    assert ANSWER.split()[1] == FIRST_WORD
    assert ANSWER.endswith(LAST_WORD)
    assert FIRST_WORD not in PROMPT and LAST_WORD not in PROMPT
