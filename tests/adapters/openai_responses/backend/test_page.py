"""The page about Responses backends names every field that is sent."""

import re

from adapters.openai_responses.table import TABLE
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "responses-backends.md").read_text(encoding="utf-8")


def test_the_page_lists_every_field_that_another_dialect_can_send() -> None:
    table = PAGE.partition("| field | sent as |\n")[2].partition("\n\n")[0]
    fields = [name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(fields) == sorted(TABLE.supported)
