"""The real Claude Code reads a PNG and a PDF from disk for a model behind a text wire, which takes neither: another
model describes the picture, and the text of the PDF is read."""

import json
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from gateway.testing.gateway import gateway_command
from tests.clients.installed import CLIENTS, PROGRAMS, LoggedGateway
from tests.clients.scratch import Scratch, claude_environ, printed_by
from tests.paths import ROOT
from tests.server.media.pdfs import pdf, shows
from tests.server.media.scene import png

CLAUDE: Final = PROGRAMS / "bin" / "claude"
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def text_gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LoggedGateway]:
    """A gateway with `ours` on a text wire, and `seeing`, which describes its pictures."""
    folder = tmp_path_factory.mktemp("gateway")
    settings = json.loads((ROOT / "settings.json").read_bytes())
    settings |= {
        "vision": {"model": "seeing"},
        "models": {
            "ours": {"backend": "demo-text", "images": "describe", "documents": "text"},
            "seeing": {"backend": "demo-chat"},
        },
    }
    async with gateway_command(folder, settings, "serve", "--port", "0", stderr=DEVNULL) as command:
        await command.wait_ready()
        yield LoggedGateway(folder, command.base_url.removeprefix("http://"))


def asked(gateway: LoggedGateway, scratch: Scratch, question: str) -> str:
    """Returns what Claude Code prints for a question."""
    command = f"claude -p {question!r} --model ours --dangerously-skip-permissions --allowedTools Read"
    return printed_by(CLAUDE, scratch, command, claude_environ(f"http://{gateway.address}", "ours"))


def test_claude_code_reads_a_picture(text_gateway: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (scratch.repository / "logo.png").write_bytes(png(40, 30, 128))
    printed = asked(text_gateway, scratch, "Read the file logo.png")
    assert "The picture is PNG of 40 by 30 pixels." in printed, printed
    assert "IMAGE_DESCRIBED" in text_gateway.written()


def test_claude_code_reads_a_pdf(text_gateway: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (scratch.repository / "report.pdf").write_bytes(pdf(shows("Revenue rose by 12 percent")))
    printed = asked(text_gateway, scratch, "Read the file report.pdf")
    assert "Revenue rose by 12 percent" in printed, printed
    assert "DOCUMENT_READ" in text_gateway.written()
