"""The `interactions` client of google-genai does a job of three turns with every kind of backend (`make clients`).

It reads every event as one of its own types, whole and streamed, with interactions that the gateway stores and with a
history that the client keeps.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.clients.installed import SDKS, LoggedGateway
from tests.clients.scratch import Scratch

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not Path(SDKS).exists(), reason="make clients installs the SDKs and runs this"),
]

PROGRAM: Final = """
import json, os, sys
from google import genai
from google.genai import interactions
from google.genai._interactions_errors import NotFoundError
model, streamed, stored = sys.argv[1], sys.argv[2] == "streamed", sys.argv[3] == "stored"
client = genai.Client(api_key="k", http_options={"base_url": os.environ["GATEWAY"]})
look = {"type": "function", "name": "look", "description": "Looks at the sky.",
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
known = {"InteractionCreatedEvent", "InteractionStatusUpdate", "StepStart", "StepDelta", "StepStop",
         "InteractionCompletedEvent"}
history, previous = [], {}
def ask(*steps):
    history.extend(steps)
    asked = previous | {"input": [*steps]} if stored else {"input": history, "store": False}
    asked |= {"model": model, "tools": [look], "system_instruction": "Be brief."}
    if not streamed:
        made = client.interactions.create(**asked)
        return answered(made.id, made.status, made.steps, made.usage)
    steps, texts = [], []
    for event in client.interactions.create(**asked, stream=True):
        assert type(event).__name__ in known, event
        match event.event_type:
            case "step.start":
                steps.append(event.step.model_dump(exclude_none=True))
                texts.append("")
            case "step.delta":
                assert "Unknown" not in type(event.delta).__name__, event
                texts[-1] += getattr(event.delta, "text", None) or getattr(event.delta, "arguments", None) or ""
            case "interaction.completed":
                last = event.interaction
    for step, text in zip(steps, texts, strict=True):
        if step["type"] == "model_output":
            step["content"] = [{"type": "text", "text": text}]
        elif step["type"] == "function_call":
            step["arguments"] = json.loads(text)
    made = interactions.Interaction.model_validate({"status": last.status, "steps": steps})
    return answered(last.id, last.status, made.steps, last.usage)
def answered(identity, status, steps, usage):
    assert all("Unknown" not in type(step).__name__ for step in steps) and usage.total_output_tokens > 0
    previous["previous_interaction_id"] = identity
    history.extend(step.model_dump(exclude_none=True) for step in steps)
    return status, steps
def said(steps):
    return "".join(piece.text for step in steps if step.type == "model_output" for piece in step.content)
print(ask({"type": "user_input", "content": [{"type": "text", "text": "What is the weather? Use the tool look."}]})[0])
calls = [step for step in history if step["type"] == "function_call"]
results = [{"type": "function_result", "call_id": one["id"], "name": one["name"], "result": "sunny"} for one in calls]
status, steps = ask(*results)
print(status, said(steps))
status, steps = ask({"type": "user_input", "content": [{"type": "text", "text": "Hello"}]})
print(status, bool(said(steps)))
if stored:
    found = client.interactions.get(previous["previous_interaction_id"], include_input=True)
    shown = [step.type for step in found.steps if step.type != "thought"]
    print(shown, found.output_text == said(steps), found.input[0].content[0].text)
    client.interactions.delete(previous["previous_interaction_id"])
    for refused in (client.interactions.get, client.interactions.cancel):
        try:
            refused(previous["previous_interaction_id"])
        except NotFoundError as error:
            print(error.body["error"]["code"])
"""
MODELS: Final = [f"demo-{kind}" for kind in ("chat", "responses", "messages", "gemini", "agent", "text", "grpc")]
SAID: Final = """\
requires_action
completed look says: sunny
completed True
"""
STORED: Final = """\
['user_input', 'model_output'] True Hello
interaction_not_found
interaction_not_found
"""


@pytest.mark.parametrize("store", ["stored", "kept"])
@pytest.mark.parametrize("form", ["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
def test_a_job_of_three_turns(model: str, form: str, store: str, gateway: LoggedGateway, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    scratch.write("ask.py", PROGRAM)
    environ = {"GATEWAY": f"http://{gateway.address}"}
    outcome = scratch.run(f"{SDKS} -W ignore ~/ask.py {model} {form} {store}", environ)
    assert (outcome.status, outcome.printed) == (0, SAID + (STORED if store == "stored" else ""))
