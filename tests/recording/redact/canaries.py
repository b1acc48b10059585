"""Invented secrets of every known shape. They are put together here, so that no scanner takes this file for a leak."""

from typing import Final

_TAIL: Final = "Canary0" * 5
_PEM: Final = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + "MIICanary0\n" * 3 + "-----END RSA PRIVATE " + "KEY-----"

CANARIES: Final = {
    "openai": "sk-" + _TAIL,
    "openai_project": "sk-proj-" + _TAIL,
    "anthropic": "sk-ant-api03-" + _TAIL,
    "openrouter": "sk-or-v1-" + _TAIL,
    "google": "AI" + "za" + _TAIL,
    "google_token": "ya29." + _TAIL,
    "github": "gh" + "p_" + _TAIL,
    "github_pat": "github_" + "pat_" + _TAIL,
    "gitlab": "glpat-" + _TAIL,
    "slack": "xoxb-" + _TAIL,
    "aws": "AK" + "IA" + "CANARY0CANARY0CA",
    "huggingface": "hf_" + _TAIL,
    "groq": "gsk_" + _TAIL,
    "yandex": "AQ" + "VN" + _TAIL,
    "yandex_token": "t1." + _TAIL + "==." + _TAIL * 2 + "==",
    "stripe": "sk_" + "live_" + _TAIL,
    "jwt": "eyJ" + _TAIL + ".eyJ" + _TAIL + "." + _TAIL,
    "pem": _PEM,
    "url": "https://user:" + _TAIL + "@example.org/path",
    "bearer": "Authorization: Bearer " + _TAIL,
    "authorization": "Authorization: " + _TAIL,
    "curl": "curl -u user:" + _TAIL,
    "parameter": "https://example.org/?key=" + _TAIL,
    "token_url": "https://" + _TAIL + "@example.org/a.git",
    "token": "BOT_TOKEN=" + _TAIL,
    "slack_app": "xapp-1-" + _TAIL,
    "warp": "wk-" + _TAIL,
    "value": "api_key=" + _TAIL,
    "password": "password: " + _TAIL,
}


def core_of(canary: str) -> str:
    """The part of a canary that must not be left anywhere."""
    return "CANARY0CANARY0" if "CANARY0" in canary else "MIICanary0" if "MII" in canary else _TAIL[:14]
