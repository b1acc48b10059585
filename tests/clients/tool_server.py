"""A server of tools by the Model Context Protocol over its standard streams: sixty tools, each with the same answer.

Source: MCP, version 2025-06-18: `initialize`, `tools/list`, `tools/call`; one message of JSON-RPC a line.
"""

import json
import sys
from typing import Any, Final

from tests.sixty_tools import SIXTY

TOOLS: Final = [
    {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.parameters)} for tool in SIXTY
]
NAME: Final = "sixty"
ANSWER: Final = "sunny with a light breeze"


def result(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Returns the result of a request."""
    if method == "initialize":
        about = {"name": NAME, "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": f"{params['name']}: {ANSWER}"}]}
    return {}


def main() -> None:
    """Answers every request until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            found = result(message["method"], message.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
