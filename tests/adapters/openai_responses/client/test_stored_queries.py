"""What clients read of a stored response, page by page, and what is left of a deleted one."""

from typing import Any, Final

import pytest

from gateway.core.errors import InvalidRequest
from tests.adapters.openai_responses.client.client import check_response
from tests.adapters.openai_responses.client.stored import Shelf
from tests.adapters.openai_responses.client.test_stored_history import REASONED

READ: Final = "/v1/responses/{id}"
ITEMS: Final = "/v1/responses/{id}/input_items"


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def listed(shelf: Shelf, identity: str, parameters: str = "") -> dict[str, Any]:
    page: dict[str, Any] = shelf.query("GET", ITEMS, identity, parameters)[0]
    return page


def refused(shelf: Shelf, method: str, path: str, identity: str, parameters: str = "") -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        shelf.query(method, path, identity, parameters)
    return caught.value


def test_a_response_is_read_as_its_client_received_it(shelf: Shelf) -> None:
    first = shelf.answer("Hello", metadata={"a": "b"})
    second = shelf.answer("More", previous_response_id=first)
    response, deleted = shelf.query("GET", READ, second)
    check_response(response)
    assert (response["id"], response["previous_response_id"], response["store"]) == (second, first, True)
    assert response["output"][0]["content"][0]["text"] == "Hello."
    assert shelf.query("GET", READ, first)[0]["metadata"] == {"a": "b"}
    assert deleted == ()


def test_the_items_that_a_response_answered_are_listed_with_those_before_them(shelf: Shelf) -> None:
    first = shelf.answer("Hello")
    items = [{"role": "user", "content": "More", "id": "mine"}, {"role": "assistant", "content": "Well"}]
    second = shelf.answer(items, previous_response_id=first)
    page = listed(shelf, second, "order=asc")
    assert [(item["role"], item["content"][0]["text"]) for item in page["data"]] == [
        ("user", "Hello"),
        ("assistant", "Hello."),
        ("user", "More"),
        ("assistant", "Well"),
    ]
    assert [item["content"][0]["type"] for item in page["data"]] == [
        "input_text",
        "output_text",
        "input_text",
        "output_text",
    ]
    assert all(item["type"] == "message" and item["status"] == "completed" for item in page["data"])
    assert page["data"][2]["id"] == "mine"
    assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
    assert page["has_more"] is False
    assert listed(shelf, second)["data"] == page["data"][::-1], "the newest first by default"


def test_pages_hold_every_item_once(shelf: Shelf) -> None:
    identity = shelf.answer([{"role": "user", "content": str(n)} for n in range(25)])
    for order in ("asc", "desc"):
        seen: list[str] = []
        after, more = "", True
        while more:
            page = listed(shelf, identity, f"limit=7&order={order}{after}")
            seen += [item["content"][0]["text"] for item in page["data"]]
            after, more = f"&after={page['last_id']}", page["has_more"]
        assert seen == [str(n) for n in (range(25) if order == "asc" else reversed(range(25)))]
    assert len(listed(shelf, identity)["data"]) == 20
    last = listed(shelf, identity, "order=asc&limit=100")["last_id"]
    empty: dict[str, Any] = {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    assert listed(shelf, identity, f"order=asc&after={last}") == empty


def test_a_listed_item_can_be_referred_to(shelf: Shelf) -> None:
    identity = shelf.answer([{"role": "user", "content": "Hello"}, {"role": "user", "content": "You"}])
    for item in listed(shelf, identity)["data"]:
        turns = shelf.read([{"type": "item_reference", "id": item["id"]}]).conversation.turns
        assert turns[0].text == item["content"][0]["text"]


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        *((f"limit={limit}", "limit") for limit in ("0", "101", "x", "-1", "1.5", "", "000000001000")),
        (f"limit={1:09}{0:05000}", "limit"),
        ("order=up", "order"),
        ("before=x", "before"),
    ],
)
def test_a_wrong_parameter_is_named(shelf: Shelf, parameters: str, param: str) -> None:
    error = refused(shelf, "GET", ITEMS, shelf.answer(), parameters)
    assert (error.status, error.param) == (400, param)


def test_an_item_that_is_not_in_the_list_is_not_found(shelf: Shelf) -> None:
    error = refused(shelf, "GET", ITEMS, shelf.answer(), "after=nothing")
    assert (error.status, error.param) == (404, "after") and "'nothing'" in error.message


def test_a_stored_response_is_not_streamed(shelf: Shelf) -> None:
    assert refused(shelf, "GET", READ, shelf.answer(), "stream=true").param == "stream"


@pytest.mark.parametrize(("method", "path"), [("GET", READ), ("DELETE", READ), ("GET", ITEMS)])
def test_an_unknown_response_is_not_found(shelf: Shelf, method: str, path: str) -> None:
    error = refused(shelf, method, path, "resp_x")
    assert (error.status, error.code) == (404, "response_not_found")


def test_a_deleted_response_leaves_no_entry(shelf: Shelf) -> None:
    identity = shelf.answer("Hello", REASONED)
    answer, names = shelf.query("DELETE", READ, identity)
    assert answer == {"id": identity, "object": "response", "deleted": True}
    assert set(names) == shelf.entries.keys()


def test_the_items_of_an_incomplete_history_are_not_listed(shelf: Shelf) -> None:
    first = shelf.answer("Hello")
    second = shelf.answer("More", previous_response_id=first)
    for name in shelf.query("DELETE", READ, first)[1]:
        del shelf.entries[name]
    assert refused(shelf, "GET", ITEMS, second).status == 404
    assert shelf.query("GET", READ, second)[0]["id"] == second
