import pytest

from gateway.demo.faults.catalogue import FAULTS
from tests.demo.faults.marked import send


def finishes(wire: str) -> int:
    return wire.count('"finish_reason":"stop"')


@pytest.mark.parametrize(
    ("marker", "holds", "finished", "done"),
    [
        ("error_first", '"code":"overloaded"', 0, True),
        ("error_frame", '"code":"model_error"', 0, False),
        ("truncated", '"content":" 2,"', 0, False),
        ("cut_mid_event", '"content":" 2,"', 0, False),
        ("bad_json", 'data: {"type": "brok\n\n', 1, True),
        ("bad_shape", '["not", "a", "chunk"]', 1, True),
        ("no_finish", '"content":" 10"', 0, True),
        ("no_done", '"content":" 10"', 1, False),
        ("double_finish", '"content":" (late)"', 2, True),
        ("usage_total", '"usage":{"total_tokens":15}', 1, True),
        ("unknown_fields", '"x_demo":{"kept":true}', 1, True),
        ("comments", ": still here …\n\n", 1, True),
        ("slow ms=1", '"content":" 10"', 1, True),
        ("bytewise chunk=5", '"content":" 10"', 1, True),
        ("huge_event mb=0.1", "x" * 100_000, 1, True),
        ("stall seconds=0.01", '"content":" 10"', 1, True),
        ("stall_first seconds=0.01", '"content":" 10"', 1, True),
        ("stall_headers seconds=0.01", '"content":" 10"', 1, True),
    ],
)
async def test_streams_with_a_fault(marker: str, holds: str, finished: int, done: bool) -> None:
    wire = (await send("chat", marker)).text
    assert holds in wire
    assert finishes(wire) == finished
    assert wire.endswith("data: [DONE]\n\n") == done


async def test_one_object_can_be_slow_too() -> None:
    assert (await send("chat", "slow ms=1", stream=False)).json()["choices"][0]["finish_reason"] == "stop"


async def test_an_unknown_fault_is_refused_with_those_there_are() -> None:
    answer = await send("chat", "nothing")
    assert answer.status_code == 400
    assert all(
        name in answer.json()["error"]["message"] for name, fault in FAULTS["chat"].items() if fault.serves is None
    )


def test_every_fault_says_what_it_does() -> None:
    assert all(fault.about for fault in FAULTS["chat"].values())
