import pytest

from gateway.demo.faults.catalogue import FAULTS
from tests.demo.faults.marked import send

COMPLETED = "event: response.completed\n"
ENDS = ("event: response.completed\n", "event: response.failed\n", "event: response.incomplete\n")


@pytest.mark.parametrize(
    ("marker", "holds", "ends"),
    [
        ("error_first", '"code":"server_error"', (0, 1, 0)),
        ("overloaded", '"code":"server_is_overloaded"', (0, 1, 0)),
        ("error_frame", "event: error\n", (0, 1, 0)),
        ("failed code=slow_down", '"code":"slow_down"', (0, 1, 0)),
        ("content_filter", '"reason":"content_filter"', (0, 0, 1)),
        ("truncated after=5", '"delta":"1,"', (0, 0, 0)),
        ("cut_mid_event", "event: response.completed", (1, 0, 0)),
        ("bad_json", 'data: {"type": "brok\n\n', (1, 0, 0)),
        ("bad_shape", '["not", "an", "event"]', (1, 0, 0)),
        ("unended_item", '"text":"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"', (1, 0, 0)),
        ("lost_call", '"call_id":"call_lost"', (1, 0, 0)),
        ("wrong_done", '"text":"Something else."', (1, 0, 0)),
        ("done_only", '"text":"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"', (1, 0, 0)),
        ("last_only", '"text":"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"', (1, 0, 0)),
        ("double_finish", COMPLETED, (2, 0, 0)),
        ("late", '"delta":" (late)"', (1, 0, 0)),
        ("usage_null", '"usage":null', (1, 0, 0)),
        ("unknown_fields", '"x_demo":{"kept":true}', (1, 0, 0)),
        ("unknown_event", "event: response.x_demo.progress\n", (1, 0, 0)),
        ("unknown_item", '"type":"web_search_call"', (1, 0, 0)),
        ("comments", ": still here …\n\n", (1, 0, 0)),
        ("slow ms=1", '"delta":" 10"', (1, 0, 0)),
        ("bytewise chunk=50", '"delta":" 10"', (1, 0, 0)),
        ("huge_event mb=0.1", "x" * 100_000, (1, 0, 0)),
        ("stall seconds=0.01", '"delta":" 10"', (1, 0, 0)),
        ("stall_first seconds=0.01", '"delta":" 10"', (1, 0, 0)),
        ("stall_headers seconds=0.01", '"delta":" 10"', (1, 0, 0)),
    ],
)
async def test_streams_with_a_fault(marker: str, holds: str, ends: tuple[int, int, int]) -> None:
    wire = (await send("responses", marker)).text
    assert holds in wire
    assert tuple(wire.count(end.rstrip("\n") if marker == "cut_mid_event" else end) for end in ENDS) == ends


async def test_pieces_may_be_missing() -> None:
    assert ".delta" not in (await send("responses", "done_only")).text
    assert "output_index" not in (await send("responses", "last_only")).text


async def test_one_object_can_be_slow_too() -> None:
    assert (await send("responses", "slow ms=1", stream=False)).json()["status"] == "completed"


async def test_an_unknown_fault_is_refused_with_those_there_are() -> None:
    answer = await send("responses", "nothing")
    assert answer.status_code == 400
    assert all(
        name in answer.json()["error"]["message"] for name, fault in FAULTS["responses"].items() if fault.serves is None
    )
