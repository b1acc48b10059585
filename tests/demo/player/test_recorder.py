import pytest
from starlette.requests import Request

from gateway.demo.player.recorder import Recorder


def request(method: str, path: str, query: str = "", headers: tuple[tuple[bytes, bytes], ...] = ()) -> Request:
    scope = {"type": "http", "method": method, "raw_path": path.encode(), "query_string": query.encode()}
    return Request({**scope, "headers": headers})


def test_old_requests_make_room() -> None:
    recorder = Recorder(kept_bytes=10)
    for body in (b"12345", b"67890", b"abcde", b"a body longer than everything"):
        recorder.record(request("POST", "/a", "b=1"), body, lambda body: body.decode())
    assert [kept.summary for kept in recorder.requests] == ["a body longer than everything"]
    recorder.record(request("POST", "/"), b"x", lambda body: body.decode())
    assert [kept.body_hex for kept in recorder.requests] == ["78"]
    assert recorder.count == 5


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "x-goog-api-key"])
def test_a_recorded_key_is_kept_and_not_shown(name: str) -> None:
    recorder = Recorder()
    headers = ((name.encode(), b"s3cret"), (b"x-other", b"1"))
    recorder.record(request("GET", "/", headers=headers), b"", lambda _: None)
    assert recorder.requests[0].headers[name] == "s3cret"
    assert "s3cret" not in str(recorder.as_json())
    assert "'x-other': '1'" in str(recorder.as_json())
