"""The doctor before a real model server: what it reports is so."""

import pytest

from gateway.local import LocalModel
from gateway.local.settings import NEW_CONNECTION
from tests.server.doctor.examined import examined, findings

pytestmark = pytest.mark.local


async def test_a_real_server_accepts_histories_of_every_form_and_lists_no_other_model(model_server: LocalModel) -> None:
    url = f"{model_server.base_url}/v1"
    examination = await examined(
        "chat", url, only=("D20", "D21", "D25", "D26"), model="smollm", entry={"headers": NEW_CONNECTION}
    )
    found = findings(examination.section)
    # There was no call whose id, index or end could be looked at.
    assert [found.pop(check).verdict for check in ("D265", "D266", "D267")] == ["skipped"] * 3
    assert {check for check, finding in found.items() if finding.verdict != "ok"} == {"D212"}
    assert found["D212"].detail == "the model 'smollm' is not in the list of 1"
