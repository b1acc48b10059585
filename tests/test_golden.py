import pkgutil
from pathlib import Path

import pytest

from adapters.openai.client_errors import error_object
from gateway.registry import ADAPTERS, DIALECTS
from gateway.testing.dialect_case import DialectCase
from gateway.testing.events import content, join
from gateway.testing.golden import Golden, read_all
from gateway.testing.golden_runner import expected_files, play
from gateway.testing.replay import cut, cuttings
from tests.golden_wires import READERS
from tests.tiers import sample

ROOT = Path(__file__).parent / "golden"
EVERY = read_all(ROOT, READERS)

goldens = pytest.mark.parametrize("golden", EVERY, ids=str)


@goldens
def test_a_scenario_gives_the_expected_files(golden: Golden, rewrite_golden: bool) -> None:
    shown = expected_files(play(golden, _bytewise(golden)))
    if rewrite_golden:
        for name, text in shown.items():
            (golden.folder / name).write_text(text, encoding="utf-8", newline="\n")
    for name, text in shown.items():
        assert text == (golden.folder / name).read_bytes().decode("utf-8"), name


@sample(lambda golden: (golden.scenario.adapter, golden.scenario.dialect), lambda golden: golden.scenario.status)
@goldens
def test_cuts_change_nothing(golden: Golden) -> None:
    outcome = play(golden, _bytewise(golden))
    for cutting in cuttings(golden.wire):
        other = play(golden, cutting)
        if outcome.error is None:
            assert (other.stream, other.completion, other.notices) == (
                outcome.stream,
                outcome.completion,
                outcome.notices,
            )
            assert join(other.events) == join(outcome.events)
        else:
            assert other.error is not None
            assert (other.error.status, error_object(other.error)) == (
                outcome.error.status,
                error_object(outcome.error),
            )
            assert content(other.events) == content(outcome.events)


@goldens
def test_an_error_is_never_an_end(golden: Golden) -> None:
    outcome = play(golden, _bytewise(golden))
    case: DialectCase = pkgutil.resolve_name(f"tests.adapters.{golden.scenario.dialect}.client.test_conformance:CASE")
    read = case.read_stream(outcome.stream)
    if outcome.error is None:
        assert read.finish is not None and read.error is None
        assert case.read_stream(outcome.stream.rstrip()[:-1]).finish is None, "something follows the end"
    else:
        assert outcome.completion == b""
        assert read.finish is None and (read.error is not None) is bool(outcome.stream)
        assert b"[DONE]" not in outcome.stream and b'"finish_reason":"' not in outcome.stream


@goldens
def test_a_folder_holds_nothing_else(golden: Golden) -> None:
    names = {path.name for path in golden.folder.iterdir()}
    (wire,) = golden.folder.glob("backend_wire.*")
    expected = {"backend_request.txt", "client_stream.txt", "client_answer.txt", "notices.txt"}
    assert names == {"scenario.toml", "request.json", wire.name, *expected}
    assert golden.scenario.purpose.endswith(".")


def test_every_adapter_and_every_dialect_is_told() -> None:
    assert {golden.scenario.adapter for golden in EVERY} == set(ADAPTERS.values())
    assert {golden.scenario.dialect for golden in EVERY} == DIALECTS.keys()


def _bytewise(golden: Golden) -> list[bytes]:
    return cut(golden.wire, range(len(golden.wire)))
