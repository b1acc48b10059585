import json

from gateway.recording.export import EXPORTS, export
from gateway.recording.recording import Recording, read_recording
from tests.recording.samples import golden_recordings, goldens, interaction_of


def test_a_har_has_what_readers_of_1_2_require() -> None:
    recording = Recording().with_interactions(interaction_of(one, x=x) for x, one in enumerate(goldens(), 1))
    log = json.loads(export(recording, "har"))["log"]
    assert log["version"] == "1.2" and log["creator"]["name"] == "dragoman"
    assert len(log["entries"]) == len(goldens())
    for entry in log["entries"]:
        assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= entry.keys()
        assert {"method", "url", "httpVersion", "cookies", "headers", "queryString", "headersSize", "bodySize"} <= (
            entry["request"].keys()
        )
        assert {"status", "statusText", "httpVersion", "cookies", "headers", "content", "redirectURL"} <= (
            entry["response"].keys()
        )
        assert {"send", "wait", "receive"} <= entry["timings"].keys()
        assert entry["response"]["content"]["size"] == entry["response"]["bodySize"]


def test_the_export_of_a_recording_is_its_file() -> None:
    assert read_recording(export(golden_recordings()[0], "recording").encode()) == golden_recordings()[0]
    assert set(EXPORTS) == {"recording", "har", "curl", "python", "pytest"}
