"""Lists the kinds of servers that are known: what each answers without a key, and how a backend entry names it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

MODELS_PATH: Final = "/v1/models"


class LockedReply(msgspec.Struct, frozen=True):
    """How a server answers a request without a key: members of the object, and a header and how its value begins."""

    signs: Mapping[str, Any]  # as those of a kind
    header: tuple[str, str] | None = None


class ServerKind(msgspec.Struct, frozen=True):
    """One kind of local server. It answers `path` with an object that has the members of `signs`: a value, or one of a
    type. `owner` is what its list of models names as `owned_by`, where that tells it from others with the same signs;
    `header` a response header and how its value begins. `locked` tells it where it answers nothing without a key: the
    header, and the members, of a refusal. `port` is the one that it takes by itself. `counter` is the name by which the
    adapter `openai_chat` knows its counter of tokens.
    """

    name: str
    title: str
    port: int | None
    path: str
    signs: Mapping[str, Any]  # types, JSON values, or objects of them
    owner: str | None = None
    header: tuple[str, str] | None = None
    locked: LockedReply | None = None
    profile: str | None = None
    counter: str | None = None


class HostedKind(msgspec.Struct, frozen=True):
    """One provider on the Internet: its backend entry. `named`: the words in capitals of its address are to be replaced
    by those of an account or a region."""

    name: str
    adapter: str
    base_url: str
    api_key_env: str
    profile: str | None = None
    api_key_header: str | None = None
    named: bool = False


DRAGOMAN: Final = ServerKind(
    "dragoman", "another Dragoman", None, "/readyz", {"status": str}, header=("x-request-id", "req_")
)
# Any server with OpenAI's list of models.
COMPATIBLE: Final = ServerKind(
    "openai-compatible",
    "a server of OpenAI's API",
    None,
    MODELS_PATH,
    {"data": list},
    locked=LockedReply({"error": dict}),
)

# The first one whose signs are there is taken: those with the most particular signs come first.
SERVER_KINDS: Final = (
    DRAGOMAN,
    ServerKind("koboldcpp", "KoboldCpp", 5001, "/api/extra/version", {"result": "KoboldCpp"}),
    ServerKind(
        "llama-cpp",
        "llama.cpp",
        8080,
        "/props",
        {"default_generation_settings": dict},
        locked=LockedReply({"error": dict}, ("server", "llama.cpp")),
        profile="llama-cpp",
        counter="llama_cpp",
    ),
    ServerKind("lm-studio", "LM Studio", 1234, "/api/v0/models", {"object": "list", "data": list}, profile="lm-studio"),
    ServerKind("sglang", "SGLang", 30000, "/get_model_info", {"model_path": str}, profile="sglang"),
    ServerKind("tgi", "text-generation-inference", None, "/info", {"model_id": str, "version": str}),
    ServerKind("vllm", "vLLM", 8000, "/version", {"version": str}, owner="vllm", profile="vllm", counter="vllm"),
    ServerKind("ollama", "Ollama", 11434, "/api/version", {"version": str}, profile="ollama-compat"),
    ServerKind("jan", "Jan", 1337, MODELS_PATH, {"data": list}, owner="jan"),
    COMPATIBLE,
)

HOSTED_KINDS: Final = (
    HostedKind("openai", "openai_chat", "https://api.openai.com/v1", "OPENAI_API_KEY", "openai"),
    HostedKind("anthropic", "anthropic_messages", "https://api.anthropic.com", "ANTHROPIC_API_KEY", None, "x-api-key"),
    HostedKind(
        "gemini",
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        "GEMINI_API_KEY",
        api_key_header="x-goog-api-key",
    ),
    HostedKind("openrouter", "openai_chat", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter"),
    HostedKind("deepseek", "openai_chat", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-thinking"),
    HostedKind("mistral", "openai_chat", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", "mistral"),
    HostedKind("groq", "openai_chat", "https://api.groq.com/openai/v1", "GROQ_API_KEY", "groq"),
    HostedKind("cerebras", "openai_chat", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", "cerebras"),
    HostedKind("xai", "openai_chat", "https://api.x.ai/v1", "XAI_API_KEY", "xai"),
    HostedKind("together", "openai_chat", "https://api.together.xyz/v1", "TOGETHER_API_KEY", "together"),
    HostedKind("fireworks", "openai_chat", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", "fireworks"),
    HostedKind(
        "qwen",
        "openai_chat",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        "qwen",
    ),
    HostedKind("kimi", "openai_chat", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", "kimi-thinking"),
    HostedKind("minimax", "openai_chat", "https://api.minimax.io/v1", "MINIMAX_API_KEY", "minimax"),
    HostedKind("glm", "openai_chat", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm"),
    HostedKind(
        "azure",
        "openai_chat",
        "https://NAME.openai.azure.com/openai/v1",
        "AZURE_OPENAI_API_KEY",
        "azure",
        "api-key",
        named=True,
    ),
    HostedKind(
        "snowflake",
        "openai_chat",
        "https://ACCOUNT.snowflakecomputing.com/api/v2/cortex/v1",
        "SNOWFLAKE_API_KEY",
        "snowflake",
        named=True,
    ),
    HostedKind(
        "bedrock",
        "openai_chat",
        "https://bedrock-runtime.REGION.amazonaws.com/openai/v1",
        "AWS_BEARER_TOKEN_BEDROCK",
        "bedrock",
        named=True,
    ),
)


def known_ports() -> tuple[int, ...]:
    """Returns the ports that the known servers take by themselves, each once."""
    return tuple(dict.fromkeys(kind.port for kind in SERVER_KINDS if kind.port is not None))
