import tomllib

import msgspec
import pytest

from adapters.warp.backend.options import WarpOptions
from tests.paths import ROOT


def test_a_backend_that_sets_nothing_sends_text_and_names_itself() -> None:
    options = msgspec.convert({}, WarpOptions)
    assert (options.encoding, options.rollback, options.client_id) == ("flatten", "buffer", "dragoman")


def test_the_version_we_give_is_the_one_we_have() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert WarpOptions().client_version == project["version"]


@pytest.mark.parametrize("wrong", [{"encoding": "text"}, {"rollback": True}, {"server_nam": "x"}, {"reasoning": 1}])
def test_what_is_no_option_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, WarpOptions)
