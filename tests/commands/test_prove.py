"""`dragoman prove` tells of losses that a baseline lacks; the golden recordings have a baseline of their own."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.recording.files import save_recording
from gateway.recording.lines import data_of
from gateway.recording.recording import Interaction, Recording
from tests.paths import ROOT
from tests.recording.samples import goldens, interaction_of

BASELINE: Final = ROOT / "tests" / "commands" / "golden_losses.json"
SETTINGS: Final[dict[str, Json]] = {
    "backends": {
        "text": {"adapter": "text", "wire": "llama_cpp", "base_url": "http://127.0.0.1:1"},
        "chat": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1"},
    },
    "models": {
        "flat": {"backend": "text", "images": "placeholder"},
        "whole": {"backend": "chat"},
        "strict": {"backend": "text", "images": "refuse"},
    },
}
PICTURE: Final[Json] = {"type": "image_url", "image_url": {"url": "https://host/picture.png"}}
REQUEST: Final[dict[str, Json]] = {"model": "flat", "messages": [{"role": "user", "content": [PICTURE]}]}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of files in a report are those of the command line."""
    monkeypatch.chdir(tmp_path)
    Path("settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    Path("picture.json").write_text(json.dumps(REQUEST), encoding="utf-8")


def proved(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Returns the exit status, and what was printed and complained about."""
    with pytest.raises(SystemExit) as left:
        main(["prove", *map(str, arguments)])
    printed = capsys.readouterr()
    assert isinstance(left.value.code, int)
    return left.value.code, printed.out, printed.err


def recordings() -> Sequence[str]:
    """Writes each golden folder as it would have been recorded. Returns the names of the files."""
    names = []
    for golden in goldens():
        names.append(f"{golden}.dragoman.jsonl")
        save_recording(Path(names[-1]), Recording().with_interactions([interaction_of(golden)]))
    return names


def test_the_golden_recordings_lose_what_their_baseline_says(
    capsys: pytest.CaptureFixture[str], *, rewrite_golden: bool
) -> None:
    """A change that loses more in one of them fails here, and is reviewed with the golden file."""
    names = recordings()
    assert len(names) > 100
    if rewrite_golden:
        assert proved(capsys, *names, "--write-baseline", BASELINE)[0] == 0
    status, out, err = proved(capsys, *names, "--baseline", BASELINE)
    assert (status, err) == (0, ""), out
    assert out.splitlines()[-1].endswith(": 0 new, 0 gone; 0 new failures"), "make golden writes it"
    listed = json.loads(BASELINE.read_text(encoding="utf-8"))["requests"]
    assert {one["file"] for one in listed} < {*names}
    assert len({loss["requirement"] for one in listed for loss in one.get("losses", ())}) > 3


def test_without_a_baseline_every_loss_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = proved(capsys, "picture.json")
    assert status == 1
    assert out.splitlines() == [
        "picture.json 1: loses images: PART_NOT_SENT (message 0): a part of kind image was replaced by the placeholder "
        "[image]",
        "1 requests, 1 losses: 1 new, 0 gone; 0 new failures",
    ]


def test_an_old_loss_does_not_fail_and_a_new_one_does(capsys: pytest.CaptureFixture[str]) -> None:
    status, baseline, _ = proved(capsys, "picture.json", "--json")
    assert status == 1
    Path("known.json").write_text(baseline, encoding="utf-8")
    assert proved(capsys, "picture.json", "--baseline", "known.json")[0] == 0
    tool: Json = {"type": "web_search"}
    Path("picture.json").write_text(json.dumps({**REQUEST, "tools": [tool]}), encoding="utf-8")
    status, out, _ = proved(capsys, "picture.json", "--baseline", "known.json")
    assert status == 1 and "loses tools: TOOL_NOT_SENT" in out and "PART_NOT_SENT" not in out
    assert proved(capsys, "picture.json", "--baseline", "known.json", "--allow", "TOOL_NOT_SENT")[0] == 0
    assert proved(capsys, "picture.json", "--baseline", "known.json", "--allow", "FIELD_NOT_SENT")[0] == 1


def test_a_baseline_is_written_and_a_loss_that_is_gone_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert proved(capsys, "picture.json", "--write-baseline", "known.json")[0] == 0
    status, out, _ = proved(capsys, "picture.json", "--baseline", "known.json", "--model", "whole")
    assert status == 0
    assert out.splitlines()[0] == "picture.json 1: no longer loses images: PART_NOT_SENT"


def test_another_model_is_asked_by_recordings_too(capsys: pytest.CaptureFixture[str]) -> None:
    golden = next(one for one in goldens() if one.scenario.dialect == "openai_chat")
    golden = msgspec.structs.replace(golden, request=json.dumps(REQUEST).encode())
    save_recording(Path("one.dragoman.jsonl"), Recording().with_interactions([interaction_of(golden)]))
    flat = proved(capsys, "one.dragoman.jsonl", "--model", "flat", "--json")[1]
    whole = proved(capsys, "one.dragoman.jsonl", "--model", "whole", "--json")[1]
    assert '"images"' in flat and '"images"' not in whole


def test_a_recorded_compaction_of_the_gateway_is_proved_too(capsys: pytest.CaptureFixture[str]) -> None:
    made = interaction_of(next(one for one in goldens() if one.scenario.dialect == "openai_responses"))
    own: Json = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}
    asked = {"model": "m", "input": [{"role": "user", "content": "Hello"}, own, {"type": "compaction_trigger"}]}
    request = msgspec.structs.replace(made.request, body=data_of(json.dumps(asked).encode()))
    made = Interaction(request, made.route, answer=made.answer)
    save_recording(Path("one.dragoman.jsonl"), Recording().with_interactions([made]))
    status, out, _ = proved(capsys, "one.dragoman.jsonl")
    assert status == 1 and "loses tools: ITEM_NOT_SENT (message 1)" in out, out


def test_a_request_that_is_refused_now_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert proved(capsys, "picture.json", "--write-baseline", "known.json")[0] == 0
    arguments = ("picture.json", "--baseline", "known.json", "--model", "strict")
    status, out, _ = proved(capsys, *arguments)
    assert status == 3 and "picture.json 1: fails: " in out and out.rstrip().endswith("1 new failures")
    assert proved(capsys, *arguments, "--write-baseline", "known.json")[0] == 0
    assert proved(capsys, *arguments)[0] == 0


def test_each_line_of_a_jsonl_file_is_a_request(capsys: pytest.CaptureFixture[str]) -> None:
    plain: dict[str, Json] = {"model": "flat", "messages": [{"role": "user", "content": "Hello"}]}
    lines = "\n".join(json.dumps(one) for one in (plain, REQUEST))
    Path("two.jsonl").write_text(f"{lines}\n\n", encoding="utf-8")
    status, out, _ = proved(capsys, "two.jsonl")
    assert status == 1 and out.startswith("two.jsonl 2: loses images") and "2 requests, 1 losses" in out


def test_a_line_that_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.jsonl").write_text(f"{json.dumps(REQUEST)}\n{{\n", encoding="utf-8")
    status, _, err = proved(capsys, "two.jsonl")
    assert status == 2 and err.startswith("dragoman: two.jsonl, line 2: ")


@pytest.mark.parametrize("written", ["", "\n\n"])
def test_a_file_without_a_request_proves_nothing(capsys: pytest.CaptureFixture[str], written: str) -> None:
    Path("none.jsonl").write_text(written, encoding="utf-8")
    save_recording(Path("none.dragoman.jsonl"), Recording())
    status, _, err = proved(capsys, "none.jsonl", "none.dragoman.jsonl")
    assert status == 2 and "none.jsonl: has no request." in err and "none.dragoman.jsonl: has no request." in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.json",), "none.json: cannot be read"),
        (("settings.json",), "settings.json: "),
        (("picture.json", "--allow", "TOOL_NOT_SEND"), "did you mean 'TOOL_NOT_SENT'?"),
        (("picture.json", "--allow", "CALLS_EMPTY"), "no rule 'CALLS_EMPTY' breaks a requirement"),
        (("picture.json", "--baseline", "picture.json"), "picture.json: "),
        (("picture.json", "--baseline", "none.json"), "none.json: cannot be read"),
        (("picture.json", "--model", "other"), "Unknown model 'other'"),
        (("picture.json", "--dialect", "other"), "other"),
        (("picture.json", "--write-baseline", "no/such/folder"), "no/such/folder: cannot be written"),
    ],
)
def test_what_cannot_be_read_is_status_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    status, _, err = proved(capsys, *arguments)
    assert status == 2 and said in err


def test_one_unreadable_file_does_not_hide_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = proved(capsys, "none.json", "picture.json")
    assert status == 2 and "none.json" in err and "PART_NOT_SENT" in out


def test_without_models_nothing_would_be_proved(capsys: pytest.CaptureFixture[str]) -> None:
    Path("settings.json").unlink()
    status, _, err = proved(capsys, "picture.json")
    assert status == 2 and "--settings" in err
