"""The official SDKs ask for compactions, read them as their own types, and send them back (`make clients`)."""

import asyncio
import json
import os
from pathlib import Path
from typing import Final

import pytest

from tests.clients.installed import SDKS
from tests.clients.scratch import Scratch
from tests.server.summaries.test_compaction import TASK, client, items
from tests.server.summaries.test_compaction_blocks import history

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not Path(SDKS).exists(), reason="make clients installs the SDKs and runs this"),
]

OPENAI: Final = """
import json, os, sys
import openai
client = openai.OpenAI(base_url=os.environ["GATEWAY"] + "/v1", api_key="k")
history = json.load(open(sys.argv[1]))
made = client.responses.compact(model="m", input=history)
print(type(made).__name__, made.object, [item.type for item in made.output], made.usage.output_tokens > 0)
kept = [item.model_dump(exclude_none=True) for item in made.output]
print(client.responses.create(model="m", input=[*kept, {"role": "user", "content": "Go on."}]).output_text)
asked = [*history, {"type": "compaction_trigger"}]
with client.responses.stream(model="m", input=asked, store=False) as stream:
    done = [event.item for event in stream if event.type == "response.output_item.done"]
    final = stream.get_final_response()
print([type(item).__name__ for item in done], [item.type for item in final.output], final.status)
kept = [final.output[0].model_dump(exclude_none=True)]
print(client.responses.create(model="m", input=[*kept, {"role": "user", "content": "Go on."}]).output_text)
"""
OPENAI_SAYS: Final = """\
CompactedResponse response.compaction ['message', 'compaction'] True
Noted.
['ResponseCompactionItem'] ['compaction'] completed
Noted.
"""
ANTHROPIC: Final = """
import json, os, sys
import anthropic
client = anthropic.Anthropic(base_url=os.environ["GATEWAY"], api_key="k")
history = json.load(open(sys.argv[1]))
went_on = {"role": "user", "content": "Go on."}
same = {"model": "m", "max_tokens": 99}
made = client.beta.messages.create(**same, messages=history, compaction={"type": "summarize"})
print(made.stop_reason, [type(block).__name__ for block in made.content], bool(made.content[0].signature))
kept = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in made.content]}
print(client.beta.messages.create(**same, messages=[kept, went_on]).content[0].text)
edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 1000}}
more = {**same, "context_management": {"edits": [edit]}}
with client.beta.messages.stream(**more, messages=history) as stream:
    final = stream.get_final_message()
print(final.stop_reason, [block.type for block in final.content], bool(final.content[0].encrypted_content))
kept = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in final.content]}
again = client.beta.messages.create(**more, messages=[*history, kept, went_on])
print(again.stop_reason, [type(block).__name__ for block in again.content])
"""
ANTHROPIC_SAYS: Final = """\
compaction ['BetaCompactionBlock'] True
Noted.
end_turn ['compaction', 'text'] True
end_turn ['BetaTextBlock']
"""
PROGRAMS: Final = {
    "openai": (OPENAI, OPENAI_SAYS, items()),
    "anthropic": (ANTHROPIC, ANTHROPIC_SAYS, history()),
}


@pytest.mark.parametrize("sdk", PROGRAMS)
async def test_an_sdk_reads_a_compaction_and_sends_it_back(sdk: str, tmp_path: Path) -> None:
    program, says, given = PROGRAMS[sdk]
    scratch = Scratch(tmp_path)
    scratch.write("ask.py", program)
    scratch.write("history.json", json.dumps(given))
    async with client() as one:
        environ = {"GATEWAY": one.gateway.base_url, "PATH": os.environ["PATH"]}
        # The SDK of OpenAI warns of messages of a user in the answer, which OpenAI documents.
        command = f"{SDKS} -W ignore ~/ask.py ~/history.json"
        outcome = await asyncio.to_thread(scratch.run, command, environ)
        assert (outcome.status, outcome.printed) == (0, says)
        assert TASK in json.dumps(one.sent) and "stands instead" in json.dumps(one.sent)
        assert len(one.model.summarised) == 2
