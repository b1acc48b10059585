"""What the gateway keeps of other requests is no part of a capture: nothing that it changes is called a defect."""

from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.notices import READ_RULES
from gateway.history.own_state import SEALED
from gateway.inspector.views.remade import remake
from gateway.recording.lines import BytesLine, RedactionLevel
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import Check, compare_to_recorded
from gateway.recording.redact.redact import redact
from gateway.server.inspect.folder import new_recording
from gateway.server.state.answer_store import AnswerStore
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_routes import DEMO
from tests.server.inspect.test_fidelity import ALWAYS, DEMO_MODELS, interactions
from tests.server.media.scene import asking, describing_gateway, picture
from tests.server.summaries.scripted import agent_history, compressing_gateway
from tests.server.summaries.test_compaction import TASK, client, items

UNCOMPARED: Final = "made with state of the gateway: not compared"
WEATHER: Final[Json] = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
# The models whose backends want state of their answers back.
KEPT: Final = ("demo-agent", "demo-messages", "demo-responses", "demo-gemini")


def checks(gateway: RunningGateway) -> list[tuple[Check, ...]]:
    """Returns those of each request, oldest first."""
    settings = gateway.app.gateway_state.settings
    return [compare_to_recorded(one, run_offline(one, settings)) for one in reversed(interactions(gateway))]


def uncompared(found: tuple[Check, ...]) -> set[str]:
    """Returns what was not compared. Everything else is equal."""
    assert [check for check in found if check.difference] == []
    return {check.subject for check in found if UNCOMPARED in check.size}


@pytest.mark.parametrize("explain", ["0", "1"])
async def test_kept_state_of_a_provider(explain: str) -> None:
    settings: dict[str, Json] = {**DEMO, **ALWAYS, "keeper": {"enabled": True}, "state": {"deadline_ms": 10_000}}
    async with running_gateway(settings) as gateway:
        for model in DEMO_MODELS:
            for stream in (False, True):
                messages: list[Json] = [{"role": "user", "content": f"Think: weather in Rome, {stream}?"}]
                body: Json = {"model": model, "stream": stream, "messages": messages, "tools": [WEATHER]}
                headers = {"x-dragoman-explain": explain}
                answer = await gateway.client.post("/v1/chat/completions", json=body, headers=headers)
                assert answer.status_code == 200
        for one, found in zip(reversed(interactions(gateway)), checks(gateway), strict=True):
            assert one.route is not None
            # Also the first request asks for what is to be kept.
            whole = {check.subject for check in found} if one.route.model in KEPT else set()
            assert uncompared(found) == whole, one.route.model


async def test_a_history_that_was_summarised() -> None:
    inspector: dict[str, Json] = {"inspector": {"contents": "always"}}
    async with compressing_gateway(inspector) as (agent, model):
        # Its tokens are estimated, which are fewer of a summary.
        model.counts = False
        for rounds in (26, 28, 29):
            await agent.ask(agent_history(rounds))
        assert [uncompared(found) for found in checks(agent.gateway)] == [
            set(),
            set(),
            {"request", "sent", "answer", "outcome"},
        ]


async def test_results_that_were_shortened_to_fit_the_window() -> None:
    """By how much depends on the counts that were reported for other requests."""
    async with compressing_gateway({"inspector": {"contents": "always"}}) as (agent, _):
        await agent.ask(agent_history(38))
        assert [uncompared(found) for found in checks(agent.gateway)] == [{"request", "sent", "answer", "outcome"}]


async def test_a_compaction_and_what_goes_on_with_it() -> None:
    """Neither is a defect, and no summary of the gateway is called a provider's."""
    async with client(more=ALWAYS) as one:
        made = await one.compacted(items())
        assert (await one.post("/v1/responses", input=made["output"])).status_code == 200
        opened, compacted = interactions(one.gateway)
        settings = one.gateway.app.gateway_state.settings
        unmade = run_offline(compacted, settings)
        assert uncompared(compare_to_recorded(compacted, unmade)) == {"request", "answer", "outcome"}
        assert unmade.conversation is not None and unmade.conversation.turns[0].text == TASK
        run = run_offline(opened, settings)
        assert uncompared(compare_to_recorded(opened, run)) == {"request", "sent", "answer", "outcome"}
        assert run.exchange is not None
        assert [turn.text for turn in run.exchange.conversation.turns] == [TASK, SEALED]
        shown = redact(new_recording([opened, compacted]), "shape", b"seed", ())
        assert "COMPACTION_UNREADABLE" not in str(shown)
        kept = shown.recording.interactions()[1]
        assert "COMPACTION_MADE" in str(kept.notice_lines) and kept.end is not None and kept.end.status == 200
        assert any(isinstance(step, BytesLine) and step.side == "client" for step in kept.steps)


@pytest.mark.parametrize("explain", ["0", "1"])
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_is_not_stored(explain: str, stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> set[str]:
        body: Json = {"model": "demo-chat", "input": "Hello", "stream": stream}
        headers = {"x-dragoman-explain": explain}
        assert (await gateway.client.post("/v1/responses", json=body, headers=headers)).status_code == 200
        return uncompared(checks(gateway)[-1])

    switched_off: dict[str, Json] = {**DEMO, **ALWAYS, "responses": {"store": False}}
    async with running_gateway(switched_off) as gateway:
        # The notice of it is in an answer that explains itself.
        assert await ask() == ({"answer"} if explain == "1" else set())
    async with running_gateway({**DEMO, **ALWAYS}) as gateway:
        assert await ask() == set()

        async def refuse(store: AnswerStore, record: object) -> str:
            return "the disk is full"

        monkeypatch.setattr(AnswerStore, "_write", refuse)
        assert await ask() == {"answer"}


@pytest.mark.parametrize("headers", [{}, {"x-dragoman-state": "off"}], ids=["kept", "not kept"])
async def test_a_picture_that_was_described(headers: dict[str, str]) -> None:
    async with describing_gateway(**ALWAYS) as (client, backends):
        await client.chat([{"role": "user", "content": "Hello"}])
        await client.chat(asking(picture()), headers)
        backends.describe = lambda _: ""
        await client.chat(asking(picture(1)), headers)
        whole = {"request", "sent", "answer", "outcome"}
        assert [uncompared(found) for found in checks(client.gateway)] == [set(), whole, whole]
        shown = [remake(one, client.gateway.app.gateway_state.settings) for one in interactions(client.gateway)]
        assert ["placeholders" in one.absent for one in shown] == [True, True, False]


@pytest.mark.parametrize("level", ["none", "shape", "full"])
async def test_a_recording_holds_what_was_sent_for_a_picture(level: RedactionLevel) -> None:
    async with describing_gateway(**ALWAYS) as (client, _):
        await client.chat(asking(picture()))
        recording = new_recording(interactions(client.gateway))
    (one,) = redact(recording, level, b"seed").recording.interactions()
    assert one.sent is not None and one.sent.body is not None
    sent = one.sent.body.content
    assert b"<image_description>" in sent or level != "none"
    assert (b"Picture 1." in sent) == (level == "none") and b"[image]" not in sent
    assert [notice.rule for notice in one.notices if notice.rule in READ_RULES] == ["IMAGE_DESCRIBED"]
