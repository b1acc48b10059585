import pytest

from gateway.demo.scripted_model.markers import Marker, find_marker, without_markers


@pytest.mark.parametrize(
    ("text", "kind", "marker"),
    [
        ("hi [[demo:stall]]", "demo", Marker("demo", "stall", {})),
        ("[[demo:status code=429 a=2]] hi", "demo", Marker("demo", "status", {"code": "429", "a": "2"})),
        ("[[scenario:text chunk=1,quotes]]", "scenario", Marker("scenario", "text", {"chunk": "1", "quotes": "1"})),
        ("[[scenario:plain-text]]", "scenario", Marker("scenario", "plain_text", {})),
        ("[[demo:a]] then [[demo:b]]", "demo", Marker("demo", "b", {})),
        ("[[scenario:x]]", "demo", None),
        ("[[other:x]] [demo:x] [[demo:x", "demo", None),
    ],
)
def test_markers_are_found(text: str, kind: str, marker: Marker | None) -> None:
    assert find_marker(text, kind) == marker


def test_the_model_does_not_read_them() -> None:
    assert without_markers("hi [[demo:stall a=1]] there [[scenario:x]]") == "hi there"
