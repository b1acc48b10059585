import sys
from types import FrameType
from typing import Any

import pytest

from gateway.demo.scripted_model.own_words import own_words, working_folder

QUESTION = "Read the file notes.md"


@pytest.mark.parametrize(
    "message",
    [
        QUESTION,
        f'"{QUESTION}"\n',
        # Qwen Code: every part of the message is a reminder, up to the last
        "<system-reminder>\nSkills: <skill>\nread: Then search the web, then run `ls`\n</skill>\n</system-reminder>\n"
        f"<system-reminder>\nToday is Sunday.\n</system-reminder>\n{QUESTION}",
        # Cline and its descendants
        f"<task>\n{QUESTION}\n</task>\n<environment_details>\n# Files\nsrc/a.py\n</environment_details>",
        f'<user_input mode="act">{QUESTION}</user_input>\n<file_content path="a.py">\nprint(1)\n</file_content>',
        f"{QUESTION}\n\n<environment_details>\n# Time\n12:00\n</environment_details>",
        # editors
        f"<additional_data>open: a.py</additional_data>\n<user_query>\n{QUESTION}\n</user_query>",
        f"<context>\nToday is Sunday.\n</context>\n<userRequest>\n{QUESTION}\n</userRequest>",
        f"```python src/a.py\nprint('read b.txt')\n```\n{QUESTION}",
        # Codex
        f"<environment_context>\n<cwd>/srv/app</cwd>\n</environment_context>\n{QUESTION}",
        # Copilot in a terminal
        f"<current_datetime>2026-11-23T16:40:39.259+00:00</current_datetime>\n\n{QUESTION}",
        # aider, in its forms of edits
        f"{QUESTION}\n\nTo suggest changes to a file you MUST write it whole.\nsome/file.js\n```\nall\n```\n",
        f"{QUESTION}\n\n# *SEARCH/REPLACE block* Rules:\n\nsome/file.py\n<<<<<<< SEARCH\n",
        f"{QUESTION}\n\n# File editing rules:\n\nWrite a diff.\n",
        f"{QUESTION}\n\n# V4A Diff Format Rules:\n\n*** Begin Patch\n",
        f"{QUESTION}\n\nReply in English.\n",
    ],
)
def test_only_the_words_of_the_user_are_left(message: str) -> None:
    assert own_words(message) == QUESTION


@pytest.mark.parametrize(
    "message",
    [
        "",
        "<system-reminder>Files have changed.</system-reminder>",
        "<environment_context>\n<cwd>/srv/app</cwd>\n</environment_context>\n",
    ],
)
def test_a_message_of_the_client_alone_holds_no_words(message: str) -> None:
    assert own_words(message) == ""


@pytest.mark.parametrize(
    "message",
    [
        "What does <system-reminder> mean?",
        "Is <b>this</b> a task?",
        'Say "one" and "two"',
        "Reply in English. Then say goodbye",
        "</task> closes what <task opens",
    ],
)
def test_words_that_only_look_like_an_addition_stay(message: str) -> None:
    assert own_words(message) == message


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert own_words("one\n```\ntwo\n~~~\nthree") == "one\n```\ntwo\n~~~\nthree"
    assert own_words("one\n````\n```\ntwo\n````\nthree") == "one\nthree"


@pytest.mark.parametrize(
    "shape",
    [
        "<task>",
        "<task></task>",
        "<task ",
        "<task><feedback>",
        "`",
        "```\n",
        "`" * 4 + "\n~~~\n",
        "Reply in .",
        "Reply in x.\n",
    ],
)
def test_the_work_grows_with_the_message(shape: str) -> None:
    """Counted in lines run, the cost of one more repetition does not depend on how many there are."""
    few, many = (_lines_run(shape * times) for times in (200, 1600))
    assert many <= 10 * few


def _lines_run(message: str) -> int:
    ran = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:  # Any: what sys.settrace asks for
        nonlocal ran
        ran += event == "line"
        return trace

    sys.settrace(trace)
    try:
        own_words(message)
    finally:
        sys.settrace(None)
    return ran


def test_a_message_of_nothing_but_code_keeps_it() -> None:
    assert own_words("```\nprint(1)\n```") == "```\nprint(1)\n```"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("I'm currently working in the directory: /srv/app/a\nand so on", "/srv/app/a"),
        ("<env>\n  Working directory: /srv/app/a\n</env>", "/srv/app/a"),
        ("<cwd>/srv/app/a</cwd>", "/srv/app/a"),
        ("Current working directory: `/srv/app/a/`.", "/srv/app/a"),
        ("the working directory is somewhere", ""),
        ("", ""),
    ],
)
def test_the_folder_that_the_user_works_in_is_found(text: str, folder: str) -> None:
    assert working_folder(text) == folder
