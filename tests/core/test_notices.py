from typing import get_args

import msgspec
import pytest

from gateway.core.notices import Action, Level, Notice, Stage


@pytest.mark.parametrize("field", Notice.__struct_fields__)
def test_a_notice_is_a_value(field: str) -> None:
    notice = Notice("trim", "dropped", "HISTORY_LIMITED", "two of four", index=3, tool_call_id="k")
    assert notice == Notice("trim", "dropped", "HISTORY_LIMITED", "two of four", index=3, tool_call_id="k")
    with pytest.raises(AttributeError):
        setattr(notice, field, "other")


def test_a_notice_says_nothing_it_was_not_told() -> None:
    notice = Notice("encode", "changed", "EFFORT_CHANGED", "detail")
    assert (notice.index, notice.tool_call_id, notice.level) == (None, None, "info")


@pytest.mark.parametrize(
    ("field", "names"), [("stage", get_args(Stage)), ("action", get_args(Action)), ("level", get_args(Level))]
)
def test_stages_actions_and_levels_are_closed_sets(field: str, names: tuple[str, ...]) -> None:
    fields = {"stage": "trim", "action": "seen", "rule": "R", "detail": "d"}
    for name in names:
        assert getattr(msgspec.convert({**fields, field: name}, Notice), field) == name
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**fields, field: "other"}, Notice)
