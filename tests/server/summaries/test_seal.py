"""Seals and opens summaries that clients keep: what is bound, what is refused, and where the key comes from."""

import base64
import logging
import random
import stat
from pathlib import Path
from typing import Final

import pytest

from gateway.core.errors import SettingsError
from gateway.core.provider_state import label_of
from gateway.core.sealed_compaction import MARK
from gateway.memory.summaries.sealed_summary import LONGEST, SealedSummary, SealUnreadable, sealed_bytes
from gateway.memory.summaries.summary import Item, Known, SummaryContent, Words
from gateway.server.log.logger import LOGGER
from gateway.server.state.state_folder import StateFolder, StateKeys
from gateway.server.state.store import EVERYONE
from gateway.server.summaries.seal import SummarySeal
from gateway.settings import StateSettings

KEY: Final = "a" * 64
OTHER: Final = "b" * 64
NOW: Final = 1_800_000_000.0
SUMMARY: Final = SealedSummary(
    NOW,
    b"0123456789abcdef",
    "uatau",
    SummaryContent((Item("goal", "Fix the ledger.", (1,)),)),
    Known(words=(Words(1, "user", "Fix the ledger."),)),
    written=True,
)


def seal(folder: Path, key: str | None = KEY) -> SummarySeal:
    environ = {"XDG_STATE_HOME": str(folder)}
    given = environ if key is None else {**environ, "DRAGOMAN_STATE_KEY": key}
    return SummarySeal(StateKeys(StateSettings(), given))


def sealed(folder: Path, summary: SealedSummary = SUMMARY, key: str | None = KEY) -> str:
    text = seal(folder, key).seal("alice", summary)
    assert text is not None
    return text


def test_another_worker_with_the_key_opens_it(tmp_path: Path) -> None:
    assert seal(tmp_path / "other machine").open("alice", sealed(tmp_path)) == SUMMARY


def test_the_text_is_base64_behind_a_mark_that_is_no_label_of_a_backend(tmp_path: Path) -> None:
    text = sealed(tmp_path)
    assert text.startswith(MARK) and len(MARK) % 4 == 0 and label_of(text) == ""
    assert base64.urlsafe_b64encode(base64.urlsafe_b64decode(text)).decode() == text
    assert "ledger" not in text and b"ledger" not in base64.urlsafe_b64decode(text)


@pytest.mark.parametrize("at", range(0, 12))
def test_no_bit_can_be_changed(tmp_path: Path, at: int) -> None:
    text = sealed(tmp_path)
    data = bytearray(base64.urlsafe_b64decode(text[len(MARK) :]))
    data[at * (len(data) - 1) // 11] ^= 1
    with pytest.raises(SealUnreadable):
        seal(tmp_path).open("alice", MARK + base64.urlsafe_b64encode(bytes(data)).decode())


@pytest.mark.parametrize("kept", [0, 1, 4, 5, 16, 40, 100])
def test_what_is_cut_is_not_opened(tmp_path: Path, kept: int) -> None:
    with pytest.raises(SealUnreadable):
        seal(tmp_path).open("alice", sealed(tmp_path)[: len(MARK) + kept])


@pytest.mark.parametrize("text", [MARK + "é" * 8, MARK + "====", MARK + "!!!!", MARK + "A" * LONGEST])
def test_what_is_no_seal_is_not_opened(tmp_path: Path, text: str) -> None:
    with pytest.raises(SealUnreadable):
        seal(tmp_path).open("alice", text)


def test_another_api_key_does_not_open_it(tmp_path: Path) -> None:
    with pytest.raises(SealUnreadable):
        seal(tmp_path).open("bob", sealed(tmp_path))


def test_it_dies_with_its_key_and_outlives_a_change_of_it(tmp_path: Path) -> None:
    text = sealed(tmp_path)
    assert seal(tmp_path, f"{OTHER},{KEY}").open("alice", text) == SUMMARY
    with pytest.raises(SealUnreadable):
        seal(tmp_path, OTHER).open("alice", text)


def test_what_does_not_fit_is_not_sealed(tmp_path: Path) -> None:
    # Text that compression cannot shorten.
    noise = random.Random(1).randbytes(LONGEST).hex()
    large = SealedSummary(NOW, b"", "u", SummaryContent(notes=noise), Known(), written=True)
    assert seal(tmp_path).seal("alice", large) is None


@pytest.mark.parametrize("forgotten", ["alice", EVERYONE])
def test_a_new_epoch_opens_nothing_of_the_old_one(tmp_path: Path, forgotten: str) -> None:
    running = seal(tmp_path)
    text = sealed(tmp_path)
    assert running.open("alice", text) == SUMMARY
    StateFolder({"XDG_STATE_HOME": str(tmp_path)}).forget(forgotten, NOW)
    with pytest.raises(SealUnreadable):
        running.open("alice", text)
    later = SealedSummary(NOW + 1, b"", "u", SummaryContent(), Known(), written=False)
    assert running.open("alice", sealed(tmp_path, later)) == later


def test_the_epoch_of_one_key_is_not_that_of_another(tmp_path: Path) -> None:
    folder = StateFolder({"XDG_STATE_HOME": str(tmp_path)})
    folder.begin()
    folder.forget("bob", NOW)
    assert seal(tmp_path).open("alice", sealed(tmp_path)) == SUMMARY


def test_a_file_of_epochs_that_cannot_be_read_opens_nothing_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = StateFolder({"XDG_STATE_HOME": str(tmp_path)})
    text = sealed(tmp_path)
    running = seal(tmp_path)
    assert running.open("alice", text) == SUMMARY
    (folder.path / "forgotten.json").write_text("{")
    for _ in range(2):
        with pytest.raises(SealUnreadable):
            running.open("alice", text)
    assert [(record.levelname, "forgotten.json" in record.message) for record in caplog.records] == [("ERROR", True)]


def test_without_a_key_one_is_made_once_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER.name):
        text = sealed(tmp_path, key=None)
        assert seal(tmp_path, None).open("alice", text) == SUMMARY
    [told] = [line for line in caplog.messages if "made a key" in line]
    assert str(tmp_path) in told and "DRAGOMAN_STATE_KEY" in told
    file = tmp_path / "dragoman" / "state.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert file.read_text().strip() not in told
    assert [one.name for one in file.parent.iterdir()] == ["state.key"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "dragoman").write_text("a file, no folder")
    kept = seal(tmp_path, None)
    text = kept.seal("alice", SUMMARY)
    assert text is not None and kept.open("alice", text) == SUMMARY
    assert kept.seal("alice", SUMMARY) is not None
    assert [record.levelname for record in caplog.records if record.levelno > logging.INFO] == ["WARNING"]


def test_a_short_key_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="DRAGOMAN_STATE_KEY"):
        seal(tmp_path, "short")


def test_a_text_above_the_bound_is_not_even_read() -> None:
    with pytest.raises(SealUnreadable, match="too long"):
        sealed_bytes(MARK + "A" * (LONGEST - len(MARK) + 1))
    assert len(sealed_bytes(MARK + "A" * (LONGEST - len(MARK)))) > 0
