import msgspec
import pytest

from gateway.core.errors import SettingsError
from gateway.recording.lines import RecordingError, RequestLine, RouteLine, data_of
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import compare_to_recorded
from gateway.recording.recording import Interaction
from gateway.recording.route import policy_of, request_head
from gateway.settings import BackendSettings, Settings
from gateway.testing.golden import Golden
from gateway.testing.golden_runner import play
from gateway.testing.replay import cut
from tests.recording.samples import goldens, interaction_of, names


@pytest.mark.parametrize("golden", goldens(), ids=names())
def test_a_run_gives_what_the_golden_folder_says(golden: Golden) -> None:
    interaction = interaction_of(golden)
    run = run_offline(interaction)
    assert [check for check in compare_to_recorded(interaction, run) if check.difference] == []
    expected = play(golden, cut(golden.wire, range(0, len(golden.wire), 97)))
    assert (run.sent and run.sent.body) == (expected.request and expected.request.body)
    assert run.notices == expected.notices
    streamed = run.conversation is not None and run.conversation.stream
    if run.error is None:
        assert run.client == (expected.stream if streamed else expected.completion)
    else:
        assert (run.status, run.code) == (200 if streamed and expected.stream else run.error.status, run.error.code)


def test_a_difference_is_told_with_its_place() -> None:
    interaction = interaction_of(goldens()[0])
    assert interaction.sent is not None and interaction.sent.body is not None
    body = interaction.sent.body.content
    wrong = msgspec.structs.replace(interaction.sent, body=data_of(body[:30] + b"?" + body[31:]))
    changed = msgspec.structs.replace(interaction, sent=wrong, notice_lines=(), end=None)
    found = {check.subject: check.difference for check in compare_to_recorded(changed, run_offline(changed))}
    assert found["sent"].startswith(f"at byte 30 of {len(body)}: was ")
    assert found["answer"] == ""


def test_a_foreign_adapter_needs_settings() -> None:
    interaction = interaction_of(goldens()[0])
    assert interaction.route is not None
    foreign = msgspec.structs.replace(interaction.route, adapter="os:system")
    with pytest.raises(SettingsError, match=r"os:system.*--settings"):
        run_offline(msgspec.structs.replace(interaction, route=foreign))


@pytest.mark.parametrize("policy", [{"trim_step": 0}, {"nonsense": 1}, {"repair": "perhaps"}])
def test_a_policy_that_is_none_is_refused(policy: dict[str, int | str]) -> None:
    with pytest.raises(RecordingError, match="policy cannot be used"):
        policy_of(RouteLine(1, "m", "b", "openai_chat", policy=policy))


def test_options_that_the_adapter_does_not_take_are_refused() -> None:
    interaction = interaction_of(goldens()[0])
    assert interaction.route is not None
    wrong = msgspec.structs.replace(interaction.route, options={"no_such_option": 1})
    with pytest.raises(RecordingError, match="no_such_option"):
        run_offline(msgspec.structs.replace(interaction, route=wrong))


def test_the_recorded_options_come_before_those_of_the_settings() -> None:
    """Settings may have changed since; they help where the recorded ones are no options any more."""
    golden = next(one for one in map(interaction_of, goldens()) if one.route and "warp" in one.route.adapter)
    assert golden.route is not None
    changed = BackendSettings(golden.route.adapter, "", options={"path": "/changed"})
    settings = Settings(backends={golden.route.backend: changed})
    run = run_offline(golden, settings)
    assert [check for check in compare_to_recorded(golden, run) if check.difference] == []
    redacted = msgspec.structs.replace(golden.route, options={"encoding": "*******"})
    run = run_offline(msgspec.structs.replace(golden, route=redacted), settings)
    assert run.sent is not None and run.sent.path == "/changed"


def test_a_recording_without_the_body_cannot_be_run() -> None:
    interaction = interaction_of(goldens()[0])
    absent = msgspec.structs.replace(interaction.request, body=None, absent="evicted")
    with pytest.raises(RecordingError, match="not in the recording"):
        run_offline(msgspec.structs.replace(interaction, request=absent))


def test_the_path_of_a_request_is_read_as_the_client_meant_it() -> None:
    """A model in the path may have any name."""
    path = "/v1beta/models/caf%C3%A9%20lait:generateContent?alt=sse"
    head = request_head(Interaction(RequestLine(1, "r", "gemini", "POST", path)))
    assert (head.path, head.query) == ("/v1beta/models/café lait:generateContent", b"alt=sse")


def test_a_run_sets_the_label_of_the_recorded_backend() -> None:
    golden = next(one for one in goldens() if str(one) == "gemini_round_trip")
    interaction = interaction_of(golden)
    assert interaction.route is not None
    label = BackendSettings("gemini", "http://host", api_key_env="KEY").state_label
    labelled = run_offline(
        msgspec.structs.replace(interaction, route=msgspec.structs.replace(interaction.route, label=label))
    )
    assert label.encode() in labelled.client
    assert labelled.client.replace(label.encode(), b"") == run_offline(interaction).client
