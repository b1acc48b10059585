from pathlib import Path

import msgspec
import pytest

from gateway.core.policy import Policy
from gateway.recording.export.golden import golden_files
from gateway.recording.files import save_folder
from gateway.recording.lines import RecordingError
from gateway.recording.route import policy_fields
from gateway.testing.golden import Golden, read_golden
from gateway.testing.golden_runner import play
from tests.recording.samples import goldens, interaction_of, names


@pytest.mark.parametrize("golden", goldens(), ids=names())
def test_a_golden_folder_comes_back(golden: Golden, tmp_path: Path) -> None:
    save_folder(tmp_path / "again", golden_files(interaction_of(golden)))
    again = read_golden(tmp_path / "again", {})
    assert (again.request, again.wire) == (golden.request, golden.wire)
    before, after = play(golden, [golden.wire]), play(again, [again.wire])
    assert (before.stream, before.completion, before.notices) == (after.stream, after.completion, after.notices)


def test_a_limit_that_is_none_is_one_that_nothing_reaches(tmp_path: Path) -> None:
    one = interaction_of(goldens()[0])
    assert one.route is not None
    policy = policy_fields(msgspec.structs.replace(Policy(), max_tool_results=None, repair="strict"))
    changed = msgspec.structs.replace(one, route=msgspec.structs.replace(one.route, policy=policy))
    save_folder(tmp_path / "folder", golden_files(changed))
    scenario = read_golden(tmp_path / "folder", {}).scenario
    assert scenario.policy.max_tool_results == 1_000_000_000 and scenario.policy.repair == "strict"


def test_a_request_that_was_not_sent_is_no_scenario() -> None:
    with pytest.raises(RecordingError, match="no route"):
        golden_files(msgspec.structs.replace(interaction_of(goldens()[0]), route=None))
