"""The model of a body that passes by: what is found is what any reader of that body finds, or the body is refused."""

import contextlib
import json
import re
from email import message_from_bytes
from email.policy import HTTP

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.framing import json_field
from gateway.framing.body_field import BodyField, FieldFault
from gateway.framing.form_field import MOST_HEAD, MOST_PARTS, FormField
from gateway.framing.json_field import MOST_FIELDS, JsonField

BOUNDARY = "XbX"


def form(*parts: bytes, end: bytes = b"--XbX--\r\n") -> bytes:
    """A form of these parts, each with its head."""
    return b"".join(b"--XbX\r\n" + part + b"\r\n" for part in parts) + end


def part(name: str, value: bytes, more: str = "", head: str = "") -> bytes:
    return f'Content-Disposition: form-data; name="{name}"{more}{head}\r\n\r\n'.encode() + value


def read(field: BodyField, body: bytes, size: int = 0) -> BodyField:
    """Feeds the body, in pieces of this size (0: at once), and its end."""
    for start in range(0, len(body), size or max(len(body), 1)):
        field.feed(body[start : start + (size or len(body))])
    field.close()
    return field


JSON_FOUND = {
    b'{"model": "m"}': "m",
    b'{"input": ["a", "b"], "model": "m", "x": {"model": "other"}}': "m",
    b' \r\n\t{"a":1,"b":-1.5e+3,"c":true,"d":null,"model":"m"} \n': "m",
    b'{"a": "\\"model\\": \\\\", "model": "m"}': "m",
    b'{"mod\\u0065l": "a\\u00e9\\n"}': "a\xe9\n",
    '{"model": "größe"}'.encode(): "größe",
    b'{"models": "x"}': None,
    b'{"x": [[[]], {"model": 1}, "]"], "y": "model"}': None,
    b"{}": None,
}
JSON_REFUSED = {
    "two": b'{"model": "a", "model": "b"}',
    "two, one escaped": b'{"model": "a", "mo\\u0064el": "b"}',
    "two, one in capitals": b'{"model": "a", "MODEL": "b"}',
    "capitals": b'{"Model": "a"}',
    "two objects": b'{"model": "a"}{"model": "b"}',
    "text behind": b'{"model": "a"} x',
    "an array": b'[{"model": "a"}]',
    "a text": b'"model"',
    "nothing but space": b"  ",
    "half": b'{"model": "a"',
    "half a value": b'{"x": [1, 2',
    "null": b'{"model": null}',
    "a number": b'{"model": 1}',
    "an object": b'{"model": {"x": 1}}',
    "a comment": b'{"x": [ /* ], "model": "a", "y": [ */ ], "m": 1}',
    "a comment at the top": b'{/* */"model": "a"}',
    "a line comment": b'{"x": [ // ]\n], "model": "a"}',
    "single quotes": b"{'model': 'a'}",
    "single quotes within": b'{"x": [\'], "model": "a", "y": [\'], "model": "b"}',
    "no quotes": b'{model: "a"}',
    "no comma": b'{"x": 1 "model": "a"}',
    "two commas": b'{"x": 1,, "model": "a"}',
    "a last comma": b'{"model": "a",}',
    "a byte order mark": b'\xef\xbb\xbf{"model": "a"}',
    "UTF-16": '{"model": "a"}'.encode("utf-16-le"),
    "UTF-16 with a mark": '{"model": "a"}'.encode("utf-16"),
    "UTF-32": '{"model": "a"}'.encode("utf-32-be"),
    "Latin-1 as the value": b'{"model": "\xe9"}',
    "a raw line end in the value": b'{"model": "a\nb"}',
    "a bad escape": b'{"model": "\\x"}',
    "half a surrogate pair": b'{"model": "\\ud800"}',
    "a NUL": b'{"x": "\x00", "model": "a"}',
    "a long value": b'{"model": "' + b"a" * 5000 + b'"}',
    "many fields": b"{" + b",".join(b'"%d":1' % n for n in range(MOST_FIELDS + 1)) + b"}",
}
FORM_FOUND = {
    form(part("model", b"m")): "m",
    form(part("file", bytes(range(256)), '; filename="a.wav"'), part("model", b"m")): "m",
    form(part("model", b"m"), part("model[]", b"x")): "m",
    form(part("model", b"", head="\r\nContent-Type: text/plain; charset=utf-8")): "",
    form(b"content-disposition: form-data; name=model\r\n\r\nm"): "m",
    form(part("prompt", b'name="model"\r\n\r\nother\r\n--Xb')): None,
    form(part("prompt", b""), end=b"--XbX--"): None,
}
FORM_REFUSED = {
    "two": form(part("model", b"a"), part("model", b"b")),
    "capitals": form(part("Model", b"a")),
    "a space": form(part("model ", b"a")),
    "an escape": form(part("mo\\del", b"a")),
    "percent": form(part("mod%65l", b"a")),
    "two names": form(part("x", b"a", '; name="model"')),
    "an encoded name": form(part("x", b"a", "; name*=utf-8''model")),
    "an encoded name alone": form(b"content-disposition: form-data; name*=utf-8''model\r\n\r\na"),
    "no name": form(b"content-disposition: form-data\r\n\r\na"),
    "no disposition": form(b"content-type: text/plain\r\n\r\na"),
    "two dispositions": form(part("x", b"a", head='\r\nContent-Disposition: form-data; name="model"')),
    "a second disposition with a space": form(
        part("x", b"a", head='\r\nContent-Disposition : form-data; name="model"')
    ),
    "a line without a colon": form(part("x", b"a", head="\r\ncontent-disposition")),
    "a name behind an escaped quote": form(part("x", b"a", r'; filename="a\"; name=model; x="; y="b"')),
    "a zero byte in a name": form(part("model\0", b"a")),
    "an encoded word": form(part("=?utf-8?q?model?=", b"a")),
    "a folded line": form(part("x", b"a", head='\r\n ; name="model"')),
    "a space before the colon": form(b'content-disposition : form-data; name="model"\r\n\r\na'),
    "an empty head": form(b"\r\na"),
    "another disposition": form(b'content-disposition: attachment; name="model"\r\n\r\na'),
    "the model as a file": form(part("model", b"a", '; filename="x"')),
    "the model in base64": form(part("model", b"YQ==", head="\r\ncontent-transfer-encoding: base64")),
    "the model in UTF-16": form(part("model", b"a", head="\r\ncontent-type: text/plain; charset=utf-16")),
    "bytes as the model": form(part("model", b"\xff")),
    "a bare line feed in a head": form(b'content-disposition: form-data; name="x"\nfoo: bar\r\n\r\na'),
    "a boundary behind a line feed": form(part("x", b'a\n--XbX\ncontent-disposition: form-data; name="model"\n\nb')),
    "a boundary within a line": form(part("x", b"a--XbX b")),
    "a boundary with a space": form(part("x", b"a"), end=b"--XbX \r\n\r\n--XbX--\r\n"),
    "a preamble": b"x\r\n" + form(part("model", b"a")),
    "an epilogue": form(part("model", b"a")) + b"x",
    "a second form": form(part("x", b"a")) + form(part("model", b"a")),
    "another boundary": form(part("x", b"a")).replace(b"XbX", b"YbY"),
    "no end": form(part("model", b"a"), end=b""),
    "half an end": form(part("model", b"a"), end=b"--XbX-"),
    "nothing": b"",
    "JSON": b'{"model": "a"}',
    "a long value": form(part("model", b"a" * 5000)),
    "a long head": form(part("x", b"a", head="\r\nx: " + "y" * MOST_HEAD)),
    "many parts": form(*[part("x", b"a")] * (MOST_PARTS + 1)),
}


@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("body", JSON_FOUND)
def test_the_model_of_json_is_found(body: bytes, size: int) -> None:
    assert read(JsonField("model"), body, size).value == JSON_FOUND[body]


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("case", JSON_REFUSED)
def test_json_that_can_be_read_in_two_ways_is_refused(case: str, size: int) -> None:
    with pytest.raises(FieldFault):
        read(JsonField("model"), JSON_REFUSED[case], size)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("body", FORM_FOUND)
def test_the_model_of_a_form_is_found(body: bytes, size: int) -> None:
    assert read(FormField("model", BOUNDARY), body, size).value == FORM_FOUND[body]


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("case", FORM_REFUSED)
def test_a_form_that_can_be_read_in_two_ways_is_refused(case: str, size: int) -> None:
    with pytest.raises(FieldFault):
        read(FormField("model", BOUNDARY), FORM_REFUSED[case], size)


@pytest.mark.parametrize("unit", [b"[[[[]]]],", b'{"a": [{"b": [[{}]]}]},', b'"a", [1, {"b": "]"}], '])
def test_nested_values_are_passed_over_as_a_whole(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bracket by bracket, a large body would hold up everything else."""
    steps: list[int] = []

    def end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
        steps.append(position)
        found = pattern.match(data, position)
        return position if found is None else found.end()

    monkeypatch.setattr(json_field, "_end", end)
    assert read(JsonField("model"), b'{"x": [' + unit * 2000 + b'1], "model": "m"}').value == "m"
    assert len(steps) < 30


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.text().filter(lambda key: key.lower() != "model")


@given(
    st.dictionaries(KEYS, JSON_VALUES, max_size=4),
    st.text(max_size=40),
    st.integers(min_value=1, max_value=50),
    st.booleans(),
    st.data(),
)
def test_any_json_object_keeps_all_but_the_name(
    others: dict[str, object], name: str, size: int, ascii_only: bool, data: st.DataObject
) -> None:
    items = [*others.items()]
    items.insert(data.draw(st.integers(min_value=0, max_value=len(items))), ("model", name))
    body = json.dumps(dict(items), ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    field = read(JsonField("model"), body, size)
    assert field.value == name
    start, end = field.span
    other = body[:start] + field.encode("another") + body[end:]
    assert json.loads(other) == {**others, "model": "another"}


@given(
    st.lists(st.tuples(st.sampled_from(["file", "prompt", "n"]), st.binary(max_size=60)), max_size=4),
    st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]), max_size=40),
    st.integers(min_value=1, max_value=50),
    st.data(),
)
def test_any_form_keeps_all_but_the_name(
    others: list[tuple[str, bytes]], name: str, size: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(min_value=0, max_value=len(others)))
    fields = [*others[:at], ("model", name.encode()), *others[at:]]
    body = form(*(part(key, value) for key, value in fields))
    field = read(FormField("model", BOUNDARY), body, size)
    assert field.value == name
    start, end = field.span
    other = body[:start] + field.encode("another") + body[end:]
    head = b"content-type: multipart/form-data; boundary=XbX\r\n\r\n"
    parsed = message_from_bytes(head + other, policy=HTTP)
    found = [(one.get_param("name", header="content-disposition"), _payload(one)) for one in parsed.iter_parts()]
    assert [key for key, _ in found] == [key for key, _ in fields]
    assert (found[at][0], found[at][1]) == ("model", b"another")


def _payload(one: object) -> object:
    return one.get_payload(decode=True)  # type: ignore[attr-defined]  # a message of the standard library


def test_a_name_that_would_end_its_part_is_refused() -> None:
    field = FormField("model", BOUNDARY)
    for name in ("a\r\n--XbX", "a\nb", "a--XbX"):
        with pytest.raises(FieldFault):
            field.encode(name)


@given(
    st.sampled_from(sorted(JSON_FOUND) + sorted(JSON_REFUSED.values())),
    st.lists(
        st.tuples(st.integers(min_value=0, max_value=60), st.sampled_from(list(b'{}[]",:\\/* \n\x00mModel1e\xc3\xa9'))),
        max_size=3,
    ),
    st.integers(min_value=1, max_value=20),
)
def test_a_damaged_body_is_refused_or_read_as_python_reads_it(
    body: bytes, changes: list[tuple[int, int]], size: int
) -> None:
    damaged = bytearray(body[:400])
    for at, byte in changes:
        damaged[at % (len(damaged) + 1) : at % (len(damaged) + 1) + at % 2] = bytes([byte])
    try:
        found = read(JsonField("model"), bytes(damaged), size).value
    except FieldFault:
        return
    try:
        fields = json.loads(damaged)
    except ValueError:
        return  # its backend refuses it
    assert fields.get("model") == found


@given(st.binary(max_size=200), st.integers(min_value=1, max_value=20))
def test_any_bytes_are_read_or_refused(body: bytes, size: int) -> None:
    for field, given_body in ((JsonField("model"), b"{" + body), (FormField("model", BOUNDARY), b"--XbX\r\n" + body)):
        with contextlib.suppress(FieldFault):
            read(field, given_body, size)
