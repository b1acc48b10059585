import subprocess
import sys

import pytest
from google.protobuf.message import Message

from adapters.warp import multi_agent_pb2 as pb
from tests.paths import ROOT


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "proto" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_generated_modules_are_those_of_their_sources() -> None:
    done = check("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_module_that_differs_from_its_source_is_named() -> None:
    program = (
        "import sys; sys.path.insert(0, 'proto'); import generate as g; from pathlib import Path;"
        "print(*g.drifted({Path('adapters/warp/multi_agent_pb2.py'): b'', Path('adapters/warp/gone_pb2.py'): b''}))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["adapters/warp/multi_agent_pb2.py", "adapters/warp/gone_pb2.py"]


def number(message: type[Message], field: str) -> int:
    return message.DESCRIPTOR.fields_by_name[field].number


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pb.TOOL_CALL_MCP_TOOL, 9),
        (number(pb.Message.ToolCall, "call_mcp_tool"), 12),
        (number(pb.Input.ToolCallResult, "call_mcp_tool"), 12),
        (number(pb.Message.ToolCallResult, "call_mcp_tool"), 16),
        (number(pb.Input.UserQuery, "intended_agent"), 4),
        (number(pb.Message.UserQuery, "intended_agent"), 5),
        (number(pb.MCPServer, "id"), 5),
        (pb.TOOL_RUN_SHELL_COMMAND, 0),
    ],
)
def test_the_numbers_that_are_easily_taken_for_another(found: int, expected: int) -> None:
    assert found == expected


def test_fields_nobody_names_survive_reading_and_writing() -> None:
    wire = bytes.fromhex("0a026d31d2060568656c6c6f")  # id "m1", then field 106
    message = pb.Message.FromString(wire)
    assert (message.id, message.SerializeToString()) == ("m1", wire)


def test_false_set_on_purpose_is_written() -> None:
    assert pb.Settings(supports_parallel_tool_calls=False).SerializeToString() == bytes.fromhex("2000")
