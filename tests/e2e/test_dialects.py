"""Every client dialect with every wire: one table of scenarios, which docs/dialects.md shows.

The clients are those of the dialect kit: they write a conversation in the words of their dialect and read strictly.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import (
    Conversation,
    Image,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.testing.dialect_case import ClientAnswer, DialectCase
from tests.dialects.cases import CASES
from tests.e2e.dialect_wires import WIRES, Response, Wire, WireGateway, wire_gateway
from tests.paths import ROOT
from tests.tiers import sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The scenarios for which requests of a dialect have no field.
ABSENT: Final[Mapping[str, tuple[str, ...]]] = {
    "openai_completions": ("one tool", "parallel tools", "five steps", "tool error", "image")
}

WEATHER: Final = ToolSpec(
    "get_weather",
    "Get the current weather of a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
PIXEL: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PAGE: Final = ROOT / "docs" / "dialects.md"
MARK: Final = "<!-- scenarios -->\n"
LONG: Final = "Tell me a long story about a gateway"


class Client(msgspec.Struct, frozen=True):
    """A client of a dialect, over HTTP or over a WebSocket."""

    case: DialectCase
    socket: bool = False

    def __str__(self) -> str:
        return f"{self.case}, WebSocket" if self.socket else str(self.case)


class Scene(msgspec.Struct, frozen=True):
    """One cell of the table: a client and a wire."""

    gateway: WireGateway
    client: Client
    wire: Wire

    @property
    def case(self) -> DialectCase:
        return self.client.case

    async def send(self, conversation: Conversation) -> Response:
        """The answer to a conversation. Over a WebSocket it is streamed, whatever the conversation says."""
        ask = self.gateway.ask_over_socket if self.client.socket else self.gateway.ask
        return await ask(self.case, conversation)

    async def ask(self, *turns: Turn, **fields: object) -> ClientAnswer:
        """The answer to a conversation, which must be complete."""
        response = await self.send(self.conversation(*turns, **fields))
        assert (response.status, response.answer.error) == (200, None)
        assert response.answer.finish is not None, "the answer is incomplete"
        return response.answer

    def conversation(self, *turns: Turn, **fields: object) -> Conversation:
        """A conversation with the model of the wire."""
        begun = Conversation(turns, model=self.wire.name, include_usage=True)
        return msgspec.structs.replace(begun, **fields)

    def finished(self, answer: ClientAnswer, reason: str) -> bool:
        """Whether the answer ended for this reason, in the word of the dialect."""
        return answer.finish == {str(key): word for key, word in self.case.finishes.items()}[reason]


def user(text: str, *blocks: Image) -> Turn:
    return Turn("user", (Text(text), *blocks))


def called(answer: ClientAnswer) -> Turn:
    """The turn with the calls of an answer, as a client keeps it in its history."""
    text = (Text(answer.text),) if answer.text else ()
    return Turn("assistant", (*text, *answer.calls))


def results(*pairs: tuple[ToolCall, str], is_error: bool = False) -> Turn:
    """The turn with the results of calls."""
    return Turn("tool", tuple([ToolResult(call.id, (Text(text),), is_error) for call, text in pairs]))


async def plain(scene: Scene) -> str:
    answer = await scene.ask(user("Hello"))
    assert answer.text and not answer.calls and scene.finished(answer, "stop")
    return "yes"


async def stream(scene: Scene) -> str:
    whole, streamed = await scene.ask(user("Hello")), await scene.ask(user("Hello"), stream=True)
    assert (streamed.text, streamed.finish) == (whole.text, whole.finish)
    return "yes"


async def usage(scene: Scene) -> str:
    for streams in (False, True):
        answer = await scene.ask(user("Hello"), stream=streams)
        assert answer.usage is not None and min(answer.usage) > 0, f"stream={streams}: {answer.usage}"
    return "yes"


async def one_tool(scene: Scene) -> str:
    for streams in (False, True):
        first = await scene.ask(user("Weather in Rome?"), tools=(WEATHER,), stream=streams)
        (call,) = first.calls
        assert (call.name, msgspec.json.decode(call.arguments)) == ("get_weather", {"city": "Rome"})
        assert scene.finished(first, "tool_calls")
        second = await scene.ask(
            user("Weather in Rome?"), called(first), results((call, "19 degrees")), tools=(WEATHER,), stream=streams
        )
        assert "19 degrees" in second.text and not second.calls and scene.finished(second, "stop")
    return "yes"


async def parallel_tools(scene: Scene) -> str:
    """The results come back in another order."""
    question = user("Weather in Rome and Paris?")
    for streams in (False, True):
        first = await scene.ask(question, tools=(WEATHER,), stream=streams)
        rome, paris = first.calls
        assert rome.id != paris.id
        assert [msgspec.json.decode(call.arguments)["city"] for call in first.calls] == ["Rome", "Paris"]
        back = results((paris, "7 degrees"), (rome, "19 degrees"))
        second = await scene.ask(question, called(first), back, tools=(WEATHER,), stream=streams)
        assert second.text.index("19 degrees") < second.text.index("7 degrees")
    return "yes"


async def five_steps(scene: Scene) -> str:
    turns = [user("Weather in Rome, in five steps?")]
    for step in range(1, 6):
        answer = await scene.ask(*turns, tools=(WEATHER,), stream=step % 2 == 0)
        (call,) = answer.calls
        turns += [called(answer), results((call, f"result {step}"))]
    last = await scene.ask(*turns, tools=(WEATHER,))
    assert not last.calls
    assert all(f"result {step}" in last.text for step in range(1, 6))
    return "yes"


async def tool_error(scene: Scene) -> str:
    first = await scene.ask(user("Weather in Rome?"), tools=(WEATHER,))
    (call,) = first.calls
    back = results((call, "Error: no such city"), is_error=True)
    second = await scene.ask(user("Weather in Rome?"), called(first), back, tools=(WEATHER,))
    assert "get_weather failed" in second.text
    return "yes"


async def reasoning(scene: Scene) -> str:
    answers = [await scene.ask(user("Think. How are you?"), stream=streams) for streams in (False, True)]
    assert answers[0].reasoning == answers[1].reasoning
    assert "answer directly" in answers[0].text + answers[0].reasoning or not answers[0].reasoning
    return "yes" if answers[0].reasoning else "no reasoning"


async def length(scene: Scene) -> str:
    """A backend that knows no limit of tokens reports one of its own."""
    for streams in (False, True):
        if scene.wire.length:
            answer = await scene.ask(user(scene.wire.length), stream=streams)
        else:
            answer = await scene.ask(user(LONG), sampling=Sampling(max_tokens=3), stream=streams)
        assert answer.text and scene.finished(answer, "length")
    return "yes"


async def stop_sequence(scene: Scene) -> str:
    whole = await scene.ask(user("Hello"))
    word = whole.text.split()[2]
    asked = scene.conversation(user("Hello"))
    if scene.case.write(asked) == scene.case.write(msgspec.structs.replace(asked, sampling=Sampling(stop=(word,)))):
        return "no field"
    for streams in (False, True):
        answer = await scene.ask(user("Hello"), sampling=Sampling(stop=(word,)), stream=streams)
        assert answer.text == whole.text.partition(word)[0]
        assert answer.finish in (scene.case.finishes["stop"], "stop_sequence")
    return "yes"


async def image(scene: Scene) -> str:
    """An image is sent, or refused at its own path."""
    conversation = scene.conversation(user("What is this?", Image(PIXEL)))
    response = await scene.send(conversation)
    if response.status == 200:
        assert response.answer.text
        return "yes"
    assert response.status == 400 and "image" in (response.answer.error or "")
    return "refused"


async def early_fault(scene: Scene) -> str:
    """A failure before the first event is a status, although the backend has begun its stream."""
    asked = scene.conversation(user(f"Hello {scene.wire.fault('early')}"), stream=True)
    response = await scene.send(asked)
    assert response.status >= 500 and response.answer.error
    return "yes"


async def late_fault(scene: Scene) -> str:
    """A failure after some text is said in the stream, and the text stays."""
    question = user(f"{LONG} {scene.wire.fault('late')}")
    streamed = await scene.send(scene.conversation(question, stream=True))
    assert streamed.answer.error and streamed.answer.finish is None
    if not scene.client.socket:
        whole = await scene.send(scene.conversation(question))
        assert whole.status >= 500 and whole.answer.error
    return "yes"


async def client_leaves(scene: Scene) -> str:
    """The request to the backend ends with the client's."""
    backend = scene.gateway.backend(scene.wire)
    await backend.idle()
    asked = scene.conversation(user(f"{LONG} {scene.wire.fault('stall')}"), stream=True)
    streaming = scene.gateway.asking_over_socket if scene.client.socket else scene.gateway.streaming
    async with streaming(scene.case, asked):
        assert backend.active == 1
    async with asyncio.timeout(5):
        await backend.idle()
    return "yes"


Table: TypeAlias = dict[tuple[str, str], dict[str, str]]
Scenario: TypeAlias = Callable[[Scene], Awaitable[str]]
SCENARIOS: Final[Mapping[str, Scenario]] = {
    scenario.__name__.replace("_", " "): scenario
    for scenario in (
        plain,
        stream,
        usage,
        one_tool,
        parallel_tools,
        five_steps,
        tool_error,
        reasoning,
        length,
        stop_sequence,
        image,
        early_fault,
        late_fault,
        client_leaves,
    )
}
CLIENTS: Final = (
    *map(Client, CASES),
    *[Client(case, socket=True) for case in CASES if any(route.websocket for route in case.dialect().routes)],
)
PAIRS: Final = [(client, wire) for client in CLIENTS for wire in WIRES]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[WireGateway]:
    async with wire_gateway() as opened:
        yield opened


@sample(("client", "wire"), "scenario")
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(("client", "wire"), PAIRS, ids=lambda value: getattr(value, "name", str(value)))
async def test_a_dialect_works_with_a_wire(
    client: Client, wire: Wire, scenario: str, gateway: WireGateway, rewrite_golden: bool
) -> None:
    absent = scenario in ABSENT.get(str(client), ())
    found = "no field" if absent else await SCENARIOS[scenario](Scene(gateway, client, wire))
    table = read_table()
    row = table.setdefault((str(client), wire.name), {})
    if rewrite_golden:
        row[scenario] = found
        write_table(table)
    assert row.get(scenario) == found, "docs/dialects.md shows another result"


async def test_the_page_shows_every_pair_and_no_other() -> None:
    table = read_table()
    assert list(table) == [(str(client), wire.name) for client, wire in PAIRS]
    assert all(list(row) == list(SCENARIOS) for row in table.values())


def read_table() -> Table:
    """The result of every scenario, by dialect and wire."""
    head, _, *rows = PAGE.read_text(encoding="utf-8").partition(MARK)[2].partition("\n\n")[0].splitlines()
    names = cells(head)[2:]
    return {(row[0], row[1]): dict(zip(names, row[2:], strict=True)) for row in map(cells, rows)}


def write_table(table: Table) -> None:
    """Write the table into the page, with an empty cell for what is not known."""
    lines = [("dialect", "wire", *SCENARIOS), ("---",) * (2 + len(SCENARIOS))]
    for client, wire in PAIRS:
        row = table.get((str(client), wire.name), {})
        lines.append((str(client), wire.name, *[row.get(scenario, "") for scenario in SCENARIOS]))
    before, _, after = PAGE.read_text(encoding="utf-8").partition(MARK)
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    PAGE.write_text(f"{before}{MARK}{text}\n{after.partition(chr(10) * 2)[2]}", encoding="utf-8")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
