"""What the official SDK of each dialect raises when an answer fails: at its first event, and after some text.

A mere cut reads as success in at least one SDK of each dialect, so every failure must be said.
"""

import json
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.clients.installed import CLIENTS, PROGRAMS, SDKS, LoggedGateway
from tests.clients.scratch import Scratch

# How a late failure ends the backend's stream. Several SDKs complete the arguments of a cut call by themselves.
LATE: Final = ("truncated after=3", "cut_mid_event after=3", "disconnect after=3", "cut_call")


class Language(msgspec.Struct, frozen=True):
    """How a program is written and run: the name of its file, its text around the `code` for a `question`, and the
    command, in which `program` is what the SDK needs."""

    file: str
    around: str
    command: str


PYTHON: Final = Language(
    "ask.py",
    """
texts = []
say = texts.append
question = {question}
try:
    exec({code!r})
except Exception as error:
    print("raised", type(error).__module__.partition(".")[0], len("".join(texts)))
else:
    print("complete", "".join(texts))
""",
    "{program} ~/ask.py",
)
NODE: Final = Language(
    "ask.mjs",
    """
const texts = [];
const say = (text) => texts.push(text);
const question = {question};
try {{
  {code}
  console.log("complete", texts.join(""));
}} catch (error) {{
  const [, raised] = error.stack.match(/node_modules.((?:@[^/]+.)?[^/]+)/) ?? [null, error.stack];
  console.log("raised", raised, texts.join("").length);
}}
""",
    "node ~/ask.mjs",
)


class Sdk(msgspec.Struct, frozen=True):
    """An SDK: what must be installed, its variables, and the code that streams an answer to `question` and says its
    text piece by piece."""

    name: str
    program: str
    environ: dict[str, str]
    code: str
    language: Language = PYTHON


OPENAI: Final = {"OPENAI_BASE_URL": "http://ADDRESS/v1", "OPENAI_API_KEY": "unused"}
ANTHROPIC: Final = {"ANTHROPIC_BASE_URL": "http://ADDRESS", "ANTHROPIC_API_KEY": "unused"}
GEMINI: Final = {"GOOGLE_GEMINI_BASE_URL": "http://ADDRESS", "GEMINI_API_KEY": "unused"}
ALL: Final = (
    Sdk(
        "openai, chat",
        sys.executable,
        OPENAI,
        """
from openai import OpenAI
for chunk in OpenAI(max_retries=0).chat.completions.create(
    model="demo-chat", stream=True, messages=[{"role": "user", "content": question}]
):
    say(chunk.choices[0].delta.content or "" if chunk.choices else "")
""",
    ),
    Sdk(
        "openai, completions",
        sys.executable,
        OPENAI,
        """
from openai import OpenAI
for chunk in OpenAI(max_retries=0).completions.create(model="demo-chat", stream=True, prompt=question, max_tokens=90):
    say(chunk.choices[0].text if chunk.choices else "")
""",
    ),
    Sdk(
        "openai, responses",
        SDKS,
        OPENAI,
        """
from openai import OpenAI
for event in OpenAI(max_retries=0).responses.create(model="demo-chat", stream=True, input=question, store=False):
    say(event.delta if event.type == "response.output_text.delta" else "")
""",
    ),
    Sdk(
        "anthropic",
        SDKS,
        ANTHROPIC,
        """
from anthropic import Anthropic
with Anthropic(max_retries=0).messages.stream(
    model="demo-chat", max_tokens=90, messages=[{"role": "user", "content": question}]
) as stream:
    for text in stream.text_stream:
        say(text)
""",
    ),
    Sdk(
        "ollama",
        SDKS,
        {"OLLAMA_HOST": "http://ADDRESS"},
        """
import ollama
for part in ollama.chat(model="demo-chat", stream=True, messages=[{"role": "user", "content": question}]):
    say(part.message.content or "")
""",
    ),
    Sdk(
        "google-genai",
        SDKS,
        GEMINI,
        """
from google import genai
client = genai.Client()
for chunk in client.models.generate_content_stream(model="demo-chat", contents=question):
    say(chunk.text or "")
""",
    ),
    Sdk(
        "@anthropic-ai/sdk",
        str(PROGRAMS / "node_modules" / "@anthropic-ai" / "sdk"),
        ANTHROPIC,
        """
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const messages = [{ role: "user", content: question }];
  const fields = { model: "demo-chat", max_tokens: 90, messages, stream: true };
  for await (const event of await new Anthropic({ maxRetries: 0 }).messages.create(fields)) {
    say(event.delta?.text ?? "");
  }
""",
        NODE,
    ),
    Sdk(
        "@google/genai",
        str(PROGRAMS / "node_modules" / "@google" / "genai"),
        GEMINI,
        """
  const { GoogleGenAI } = await import("@google/genai");
  const client = new GoogleGenAI({ apiKey: "unused" });
  for await (const chunk of await client.models.generateContentStream({ model: "demo-chat", contents: question })) {
    say(chunk.text ?? "");
  }
""",
        NODE,
    ),
)


def raised(sdk: Sdk, gateway: LoggedGateway, folder: Path, fault: str) -> tuple[str, int]:
    """The package whose error was raised, and the length of the text before it."""
    if not Path(sdk.program).exists():
        pytest.skip(f"NOT RUN: {sdk.name}, because its package could not be installed here")
    scratch = Scratch(folder)
    question = json.dumps(f"Tell me a story [[demo:{fault}]]")
    language = sdk.language
    scratch.write(language.file, language.around.format(question=question, code=sdk.code))
    environ = {name: value.replace("ADDRESS", gateway.address) for name, value in sdk.environ.items()}
    outcome = scratch.run(language.command.format(program=sdk.program), environ)
    word, *rest = outcome.printed.split()
    assert (outcome.status, word) == (0, "raised"), outcome.printed
    return rest[0], int(rest[1])


pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the SDKs and runs this"),
    pytest.mark.parametrize("sdk", ALL, ids=lambda sdk: sdk.name),
]


@pytest.mark.parametrize("fault", LATE)
def test_a_late_failure_is_raised_after_the_text_before_it(
    sdk: Sdk,
    fault: str,
    gateway: LoggedGateway,
    tmp_path: Path,
) -> None:
    package, length = raised(sdk, gateway, tmp_path, fault)
    assert package == sdk.name.partition(",")[0].replace("google-genai", "google")
    assert length > 0, "the text before the failure is lost"


def test_an_early_failure_is_raised(sdk: Sdk, gateway: LoggedGateway, tmp_path: Path) -> None:
    assert raised(sdk, gateway, tmp_path, "error_first")[1] == 0
