"""A request of a recording is explained by the settings that it was sent by."""

from pathlib import Path

import msgspec
import pytest

from gateway.cli import main
from gateway.core.errors import InvalidRequest
from gateway.diagnostics.explain_recorded import chosen_request, explain_recorded, recorded_document, recorded_outcome
from gateway.recording.files import save_recording
from gateway.recording.recording import Interaction, Recording
from tests.recording.samples import goldens, interaction_of, names


def named(name: str, x: int) -> Interaction:
    one = interaction_of(goldens()[names().index(name)]).numbered(x)
    return msgspec.structs.replace(one, request=msgspec.structs.replace(one.request, id=f"req_{x}"))


def several() -> Recording:
    return Recording().with_interactions(
        [
            named("openai_chat_plain_answer", 1),
            named("openai_chat_rate_limited", 2),
            named("openai_chat_broken_history", 3),
        ]
    )


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_last_request_that_failed_is_explained_or_the_one_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.dragoman.jsonl"
    save_recording(file, several())
    assert run("explain", str(file)) == 0
    assert capsys.readouterr().out.startswith("request req_2, 2 of 3: 429 ")
    assert run("explain", str(file), "--id", "req_3") == 0
    told = capsys.readouterr().out
    assert told.startswith("request req_3, 3 of 3: 200\n") and "violation" in told
    assert run("explain", str(file), "--id", "req_4") == 2
    assert "has no request 'req_4'; there are req_1, req_2, req_3." in capsys.readouterr().err
    (tmp_path / "request.json").write_text('[{"role": "user", "content": "hi"}]')
    assert run("explain", str(tmp_path / "request.json"), "--id", "req_1") == 2
    assert "is no recording, and has no request 'req_1'." in capsys.readouterr().err


def test_what_is_explained_is_what_was_sent() -> None:
    (interaction,) = Recording().with_interactions([named("openai_chat_broken_history", 1)]).interactions()
    told = explain_recorded(interaction)
    assert interaction.sent is not None and interaction.sent.body is not None
    assert told.encoded is not None and bytes.fromhex(told.encoded.hex) == interaction.sent.body.content
    assert told.backend == "b" and [one.rule for one in told.violations]


def test_other_settings_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.dragoman.jsonl"
    save_recording(file, several())
    (tmp_path / "settings.json").write_text("{}")
    words = ("explain", str(file), "--id", "req_1", "--settings", str(tmp_path / "settings.json"))
    assert run(*words) == 0 and ", backend b\n" in capsys.readouterr().out
    assert run(*words, "--profile", "mistral") == 0 and ", backend" not in capsys.readouterr().out
    assert run("explain", str(tmp_path / "settings.json"), "--since", str(file)) == 2


def test_what_a_recording_lacks_is_said() -> None:
    with pytest.raises(InvalidRequest, match="has no request"):
        chosen_request(Recording())
    one = named("openai_chat_plain_answer", 1)
    recording = Recording().with_interactions([msgspec.structs.replace(one, end=None)])
    (unended,) = recording.interactions()
    assert recorded_outcome(unended, recording) == "request req_1, 1 of 1: its end is not in the recording"
    lost = msgspec.structs.replace(one, request=msgspec.structs.replace(one.request, body=None, absent="evicted"))
    with pytest.raises(InvalidRequest, match="The body of the request req_1 is not in the recording: evicted"):
        recorded_document(lost)
    unrouted = explain_recorded(msgspec.structs.replace(one, route=None))
    assert unrouted.backend is None and unrouted.text
