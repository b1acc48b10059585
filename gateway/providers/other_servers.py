"""Describes the servers of models of which no demand is known: KoboldCpp, text-generation-inference and Jan."""

from typing import Final

from gateway.providers.provider import MODELS_PATH, Provider, ServerKind

KOBOLDCPP: Final = Provider(
    "koboldcpp",
    server=ServerKind("koboldcpp", "KoboldCpp", 5001, "/api/extra/version", {"result": "KoboldCpp"}),
)
TGI: Final = Provider(
    "tgi",
    server=ServerKind(
        "tgi", "text-generation-inference", None, "/info", {"model_id": str, "version": str}, text_wire="tgi"
    ),
)
JAN: Final = Provider("jan", server=ServerKind("jan", "Jan", 1337, MODELS_PATH, {"data": list}, owner="jan"))
