"""The table of rules is complete, and so is its page."""

from typing import get_args

import msgspec
import pytest

from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.policy import Policy
from gateway.core.rules import RULES, RuleCode, violation
from gateway.history.prepare import prepare
from gateway.history.repair import repair
from gateway.history.validate import validate
from gateway.providers.profile import Profile
from tests.paths import ROOT

# One whose provider has every rule.
PROFILE = Profile(first_turn="user")
PAGE = ROOT / "docs" / "rules.md"


def test_the_table_holds_exactly_the_codes() -> None:
    assert set(RULES) == set(get_args(RuleCode))


@pytest.mark.parametrize("code", get_args(RuleCode))
def test_a_violation_says_where_and_how_to_mend_it(code: RuleCode) -> None:
    told = violation(code, 3, param="messages[3].x", tool_call_id="a")
    assert (told.rule, told.index, told.param, told.tool_call_id) == (code, 3, "messages[3].x", "a")
    assert told.detail.startswith("messages[3].x ")
    assert told.advice == CANONICAL_PATHS.worded(RULES[code].advice)
    assert told.detail.endswith(".") and told.advice.endswith((".", '."', "}."))


def test_a_detail_takes_the_place_of_the_sentence() -> None:
    assert violation("CONTENT_TYPE", 0, param="p", detail="content is a number").detail == "content is a number"


def section_of(code: str) -> str:
    return PAGE.read_text(encoding="utf-8").partition(f"\n### {code}\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("code", get_args(RuleCode))
def test_the_page_of_rules_has_a_section_for_each_code(code: RuleCode) -> None:
    section = section_of(code)
    for part in ("Example:", "Repair:", "Providers say:"):
        assert part in section


def test_the_page_of_rules_names_no_code_that_is_gone() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line[4:] for line in lines if line.startswith("### ")] == list(get_args(RuleCode))


def test_the_page_names_the_longest_list_of_functions_and_the_longest_name() -> None:
    names = [f"f{n}" for n in range(128)] + ["read file"]
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "tools": tools}
    told = validate(decode(msgspec.json.encode(body)))
    assert {one.rule for one in told} == {"TOOLS_COUNT", "TOOLS_NAME"}


def example_of(code: str) -> Conversation:
    example = section_of(code).partition("```json\n")[2].partition("```")[0]
    return decode(b'{"model": "m", "messages": ' + example.encode() + b"}")


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.repair not in (None, "seen")])
def test_the_example_of_each_rule_breaks_that_rule_and_can_be_mended(code: str) -> None:
    broken = example_of(code)
    assert code in {one.rule for one in validate(broken, PROFILE)}
    mended, notices = repair(broken, Policy(profile=PROFILE))
    assert validate(mended, PROFILE) == ()
    assert code in {notice.rule for notice in notices}


@pytest.mark.parametrize("code", [code for code, rule in RULES.items() if rule.repair is None])
@pytest.mark.parametrize("mode", ["repair", "strict", "off"])
def test_the_example_of_a_rule_without_repair_is_refused_in_every_mode(code: str, mode: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        prepare(example_of(code), msgspec.convert({"repair": mode}, Policy))
    assert (caught.value.status, caught.value.extra["rule"]) == (400, code)
    assert "in every mode" in section_of(code)


def test_the_example_without_messages_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        decode(b'{"model": "m", "messages": []}')
