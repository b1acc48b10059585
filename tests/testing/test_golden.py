from pathlib import Path

import msgspec
import pytest

from gateway.testing.golden import Golden, read_all, read_golden
from gateway.testing.golden_runner import expected_files, play
from gateway.testing.replay import cut

SCENARIO = 'purpose = "A parrot speaks."\nadapter = "tests.examples.parrot:ParrotAdapter"\n'
REQUEST = b'{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]}'
WIRE = b'data: {"text": "Good morning."}\n\ndata: {"tokens": 5}\n\n'


def test_a_folder_is_read(tmp_path: Path) -> None:
    golden = _golden(tmp_path)
    assert (golden.request, golden.wire, str(golden)) == (REQUEST, WIRE, tmp_path.name)
    assert golden.scenario.purpose == "A parrot speaks." and golden.scenario.status == 200


def test_a_wire_written_for_people_is_read_by_its_ending(tmp_path: Path) -> None:
    _golden(tmp_path).folder.joinpath("backend_wire.sse").rename(tmp_path / "backend_wire.words")
    golden = read_golden(tmp_path, {".words": lambda text: text.upper().encode()})
    assert golden.wire == WIRE.upper()


def test_a_misspelt_key_is_told(tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match="statsu"):
        _golden(tmp_path, SCENARIO + "statsu = 429\n")


def test_all_folders_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        _golden(tmp_path / name)
    assert [str(golden) for golden in read_all(tmp_path, {})] == ["a", "b"]


def test_a_complete_answer_is_played_and_shown(tmp_path: Path) -> None:
    outcome = play(_golden(tmp_path), [WIRE])
    shown = expected_files(outcome)
    assert outcome.error is None and outcome.stream.endswith(b"[DONE]\n\n")
    assert shown["backend_request.txt"].startswith("POST /speak\naccept: text/event-stream\n")
    assert '"prompt": "User: Hi"' in shown["backend_request.txt"]
    assert shown["client_answer.txt"].startswith("HTTP 200\n\n{") and "Good morning." in shown["client_stream.txt"]
    assert shown["notices.txt"] == ""


def test_an_error_in_the_stream_is_shown_as_one_frame(tmp_path: Path) -> None:
    shown = expected_files(play(_golden(tmp_path, wire=WIRE[:40]), cut(WIRE[:40], range(40))))
    assert shown["client_stream.txt"].startswith("HTTP 200\n") and '"error"' in shown["client_stream.txt"]
    assert shown["client_answer.txt"].startswith("HTTP 502\n")


def test_an_error_before_the_stream_is_a_status_with_its_headers(tmp_path: Path) -> None:
    scenario = SCENARIO + 'status = 429\nheaders = {retry-after = "7"}\n'
    shown = expected_files(play(_golden(tmp_path, scenario, wire=b"busy"), [b"busy"]))
    assert shown["client_stream.txt"] == shown["client_answer.txt"]
    assert shown["client_stream.txt"].startswith("HTTP 429\nretry-after: 7\n\n{")


def test_a_refused_request_sends_nothing(tmp_path: Path) -> None:
    outcome = play(_golden(tmp_path, request=b'{"model": "parrot"}'), [WIRE])
    shown = expected_files(outcome)
    assert outcome.request is None and outcome.events == ()
    assert shown["backend_request.txt"] == "Nothing is sent.\n"
    assert shown["client_stream.txt"].startswith("HTTP 400\n")


def test_a_notice_is_one_line(tmp_path: Path) -> None:
    request = b'{"model": "parrot", "user": "u", "messages": [{"role": "user", "name": "Ann", "content": "Hi"}]}'
    first, second = expected_files(play(_golden(tmp_path, request=request), [WIRE]))["notices.txt"].splitlines()
    assert first == "debug encode dropped FIELD_NOT_SENT: the backend has no field for 'user'"
    assert second.startswith("debug flatten dropped TURN_NAME_NOT_SENT messages[0]: ")


def _golden(folder: Path, scenario: str = SCENARIO, request: bytes = REQUEST, wire: bytes = WIRE) -> Golden:
    (folder / "scenario.toml").write_text(scenario)
    (folder / "request.json").write_bytes(request)
    (folder / "backend_wire.sse").write_bytes(wire)
    return read_golden(folder, {})
