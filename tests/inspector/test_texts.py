"""The texts about rules and codes are those of the documentation, and there is one for each."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.rules import RULES
from gateway.inspector.texts import ErrorText, error_text, rule_text
from gateway.testing.gateway import running_gateway
from tests.paths import ROOT
from tests.server.api.inspect.test_routes import settings
from tests.test_documents import CODE

INSPECTOR: Final = ROOT / "gateway" / "inspector"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def plain(text: str) -> str:
    """Returns Markdown as a person reads it without a renderer: no links, no marks of code, one line a paragraph."""
    parts = re.split(r"```\w*\n(.*?)```\n", text, flags=re.S)
    return "\n".join(part.strip() if at % 2 else _unwrapped(part) for at, part in enumerate(parts)).strip()


def _unwrapped(text: str) -> str:
    text = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text).replace("`", "")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def made() -> Mapping[str, str]:
    """Returns the texts from the pages."""
    return dict(sorted([*_rows(page("notices.md")), *_sections(page("rules.md"))]))


def _rows(text: str) -> Iterator[tuple[str, str]]:
    for code, meaning in re.findall(r"^\| `([A-Z0-9_]+)` \|.*\| ([^|]+) \|$", text, re.M):
        yield code, plain(meaning)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    for code, body in re.findall(r"^### ([A-Z_]+)\n\n(.*?)(?=^##|\Z)", text, re.M | re.S):
        yield code, plain(body)


def made_errors() -> Mapping[str, Mapping[str, str]]:
    """Returns the cause and the remedy of each code, from the page."""
    codes = page("errors.md").partition("<!-- codes -->")[2]
    rows = re.findall(r"^\| `([a-z_]+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", codes, re.M)
    return {code: {"cause": plain(cause), "remedy": plain(remedy)} for code, cause, remedy in sorted(rows)}


@pytest.mark.parametrize(
    ("path", "texts"),
    [("rule_texts.json", made()), ("error_texts.json", made_errors())],
    ids=["rules", "errors"],
)
def test_the_file_is_made_from_the_pages(path: str, texts: Mapping[str, Json], pytestconfig: pytest.Config) -> None:
    text = json.dumps(texts, indent=1, ensure_ascii=False) + "\n"
    if pytestconfig.getoption("--rewrite-golden"):
        (INSPECTOR / path).write_text(text, encoding="utf-8")
    assert (INSPECTOR / path).read_text(encoding="utf-8") == text, "make golden writes it"


def test_every_code_of_the_gateway_has_a_cause_and_a_remedy() -> None:
    for code, text in made_errors().items():
        assert error_text(code) == ErrorText(**text) and text["cause"] and text["remedy"], code
    assert len(made_errors()) > 50 and "upstream_stream_truncated" in made_errors()
    assert error_text("a code of a backend") == ErrorText()


async def test_a_failed_request_says_what_its_code_means_and_what_to_do() -> None:
    """The message may quote others, so that its words are replaced; those of the documentation are never."""
    async with running_gateway(settings()) as gateway:
        said: Json = [{"role": "user", "content": "Hello [[demo:truncated after=2]]"}]
        answer = await gateway.chat(model="demo-chat", messages=said, stream=True)
        found = await gateway.client.get(f"/inspect/api/requests/{answer.headers['x-request-id']}")
        error, text = found.json()["error"], made_errors()["upstream_stream_truncated"]
        assert (error["cause"], error["advice"]) == (text["cause"], text["remedy"])


def test_every_rule_of_the_page_has_a_text() -> None:
    listed = {code for code in re.findall(r"`([^`\n]+)`", page("notices.md")) if CODE.fullmatch(code)}
    # These are no notices, but named by one.
    (named,) = re.findall(r"may also name these rules: (.*?)\.\n", page("notices.md"), re.S)
    assert listed - set(re.findall(r"`([A-Z_]+)`", named)) == set(made()) and set(RULES) <= listed
    for code, text in made().items():
        assert text == text.strip() and len(text) > 20 and "`" not in text and "](" not in text, code
    assert all("\nRepair: " in made()[rule] for rule in RULES)


async def test_the_route_gives_the_text_and_refuses_what_is_no_rule() -> None:
    async with running_gateway(settings()) as gateway:
        answer = await gateway.client.get("/inspect/api/rules/TOOL_ORPHAN")
        assert answer.json() == {"rule": "TOOL_ORPHAN", "text": made()["TOOL_ORPHAN"]}
        answer = await gateway.client.get("/inspect/api/rules/NO_SUCH")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_rule")
    with pytest.raises(InvalidRequest, match="NO_SUCH"):
        rule_text("NO_SUCH")
