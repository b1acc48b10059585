"""What is read by a template is what a parser reads; what it cannot read alike, it does not read."""

import pytest

from gateway.protobuf.text_templates import TextTemplates, find_template, with_other_number
from gateway.protobuf.wire import varint


def field(number: int, *parts: bytes) -> bytes:
    value = b"".join(parts)
    return varint(number << 3 | 2) + varint(len(value)) + value


def nested(text: bytes, *, number: bytes = b"\x08\x05") -> bytes:
    """A text in two messages, with a number before them and one behind them."""
    return number + field(2, field(1, b"id"), field(3, field(1, text), b"\x10\x01")) + field(4, b"\x08", number[1:])


def learned(payload: bytes, text: bytes, numbers: tuple[tuple[int, int], ...] = ()) -> TextTemplates[str]:
    template = find_template(payload, text)
    assert template is not None
    templates: TextTemplates[str] = TextTemplates(1)
    templates.add(template.with_numbers(numbers, len(payload)), "meaning")
    return templates


@pytest.mark.parametrize("size", [1, 2, 100, 110, *range(115, 135), 16_370, 16_384, 70_000])
def test_a_text_of_any_length_is_read_twice_alike(size: int) -> None:
    templates = learned(nested(b"hello"), b"hello")
    text = "y" * size
    for _ in range(2):
        assert templates.read(nested(text.encode())) == ("meaning", text, ())


def test_numbers_may_change_while_they_have_their_size() -> None:
    payload = nested(b"hello")
    templates = learned(payload, b"hello", ((1, 2), (len(payload) - 1, len(payload))))
    for text in (b"hello", b"good morning"):
        assert templates.read(nested(text, number=b"\x08\x7f")) == ("meaning", text.decode(), [127, 127])
    assert templates.read(nested(b"hello", number=b"\x08\x80\x01")) is None
    # The last byte begins a number that goes on.
    assert templates.read(nested(b"hello")[:-1] + b"\x80") is None


def test_numbers_of_several_bytes_are_read_whole() -> None:
    payload = nested(b"hello", number=b"\x08\xac\x02")
    templates = learned(payload, b"hello", ((1, 3), (len(payload) - 2, len(payload))))
    assert templates.read(nested(b"ab", number=b"\x08\x80\x01")) == ("meaning", "ab", [128, 128])
    assert templates.read(payload[:1] + b"\x05\x02" + payload[3:]) is None


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x08",
        nested(b"hello", number=b"\x08\x06"),
        nested(b""),
        nested(b"hello") + b"\x10\x01",
        nested(b"hello").replace(b"id", b"ie"),
        nested(b"hello").replace(b"\x05hello", b"\x04hello"),
        nested(b"\xff\xfe"),
        # A length with more bytes than it needs, which a parser may refuse.
        nested(b"hello").replace(b"\x05hello", b"\x85\x00hell"),
    ],
)
def test_anything_else_is_left_to_the_parser(payload: bytes) -> None:
    assert learned(nested(b"hello"), b"hello").read(payload) is None


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (nested(b"hello"), b""),
        (nested(b"hello"), b"missing"),
        # The text is written first inside another one, where a length seems to stand before it.
        (field(1, b"a\x02lo") + field(2, b"lo"), b"lo"),
        (field(9, b"x" * 2000) + field(1, b"lo"), b"lo"),
    ],
)
def test_a_text_that_cannot_be_found_by_its_bytes_has_no_template(payload: bytes, text: bytes) -> None:
    assert find_template(payload, text) is None


def test_another_text_begins_differently() -> None:
    payload = nested(b"!!?")
    template = find_template(payload, b"!!?")
    assert template is not None
    assert template.with_other_text(payload, b"!!?") == (nested(b"???"), "???")
    assert template.with_other_text(nested(b"lo"), b"lo") == (nested(b"!!"), "!!")


@pytest.mark.parametrize("number", [0, 1, 126, 127, 128, 300, 16_383, 16_384])
def test_another_number_has_the_same_size(number: int) -> None:
    written = varint(number)
    other, more = with_other_number(b"a" + written + b"b", slice(1, -1))
    assert more and other == b"a" + varint(number + more) + b"b"
    assert len(other) == 2 + len(written)


def test_each_time_in_vain_doubles_the_wait() -> None:
    templates: TextTemplates[str] = TextTemplates(2)
    assert [n for n in range(1, 40) if templates.is_due()] == [2, 6, 14, 30]


def test_the_oldest_of_many_templates_is_forgotten() -> None:
    templates: TextTemplates[int] = TextTemplates(1)
    for number in range(1, 7):
        template = find_template(field(number, b"lo"), b"lo")
        assert template is not None
        templates.add(template, number)
    found = [templates.read(field(number, b"ab")) for number in range(1, 7)]
    assert found == [None, None, *((number, "ab", ()) for number in (3, 4, 5, 6))]
