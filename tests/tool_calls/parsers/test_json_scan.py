"""A text that a strict decoder takes is scanned by no step, with the same result."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.tool_calls.parsers.json_scan import _scanned_value, repaired_value

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.sampled_from('a"\\\n\t\x7f\x85é\ud83d😀/ '), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
CUTS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["", "\\", '"', "\n", "0", ",", "]", " ", "\ufeff", "x"])), max_size=2
)


def _cut(text: str, cuts: list[tuple[int, str]]) -> str:
    for at, inserted in cuts:
        text = text[:at] + inserted + text[at + (not inserted) :]
    return text


@given(st.builds(json.dumps, VALUES, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1])), CUTS)
@example('{"a": "\\ud83d"}', [])
@example("[" * 2000 + "]" * 2000, [])
@example("1e999", [])
def test_law_valid_json_is_its_own_repair(text: str, cuts: list[tuple[int, str]]) -> None:
    written = _cut(text, cuts)
    assert repaired_value(written) == _scanned_value(written)
