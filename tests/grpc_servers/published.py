"""The published packages with the real schema of a preset."""

import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from adapters.proto.backend.schema import MessageType
from tests.grpc_servers.installed import FOLDER, python
from tests.paths import ROOT

_PROGRAM: Final = ROOT / "tests" / "grpc_servers" / "programs" / "published_schema.py"


class Published(msgspec.Struct, frozen=True):
    """The module with the messages of a call, both with their full names, and the file that names its method."""

    module: str
    package: str
    request: str
    response: str
    calls: str

    def names_method(self, path: str) -> bool:
        """Return whether the published client calls this path."""
        (file,) = FOLDER.glob(f"schemas/lib/python*/site-packages/{self.calls}")
        return f"'{path}'" in file.read_text(encoding="utf-8").replace('"', "'")

    def messages(self) -> tuple[MessageType, MessageType]:
        """Return the types of the request and the response."""
        pool = _pool(self)
        request = pool.FindMessageTypeByName(f"{self.package}.{self.request}")
        return request, pool.FindMessageTypeByName(f"{self.package}.{self.response}")


_KSERVE: Final = "inference"
_TRITON: Final = Published(
    "tritonclient.grpc.service_pb2",
    _KSERVE,
    "ModelInferRequest",
    "ModelStreamInferResponse",
    "tritonclient/grpc/service_pb2_grpc.py",
)
_VERTEX: Final = Published(
    "google.cloud.aiplatform_v1.types.prediction_service",
    "google.cloud.aiplatform.v1",
    "GenerateContentRequest",
    "GenerateContentResponse",
    "google/cloud/aiplatform_v1/services/prediction_service/transports/grpc.py",
)
# A preset without a published package has the reason instead.
PUBLISHED: Final[Mapping[str, Published | str]] = {
    # Dynamo publishes no package with its schema; it names Triton's messages as those that it speaks.
    "dynamo": _TRITON,
    "demo": "the demo backend's schema is our own: proto/demo",
    "gemini_grpc": Published(
        "google.ai.generativelanguage_v1beta.types.generative_service",
        "google.ai.generativelanguage.v1beta",
        "GenerateContentRequest",
        "GenerateContentResponse",
        "google/ai/generativelanguage_v1beta/services/generative_service/transports/grpc.py",
    ),
    "gigachat": "GigaChat's schema is published as a page of its documents",
    "localai": "LocalAI publishes no package with its schema",
    "mlserver": Published(
        "mlserver.grpc.dataplane_pb2",
        _KSERVE,
        "ModelInferRequest",
        "ModelInferResponse",
        "mlserver/grpc/dataplane_pb2_grpc.py",
    ),
    "sglang": "SGLang publishes no package with the schema of its native server",
    "tgis": Published(
        "vllm_tgis_adapter.grpc.pb.generation_pb2",
        "fmaas",
        "SingleGenerationRequest",
        "GenerationResponse",
        "vllm_tgis_adapter/grpc/pb/generation_pb2_grpc.py",
    ),
    "triton_trtllm": _TRITON,
    "triton_vllm": _TRITON,
    "vertex_grpc": _VERTEX,
    "vertex_grpc_level": _VERTEX,
    "warp": "Warp publishes no package; its whole schema is proto/warp",
    "xai": Published(
        "xai_sdk.proto.v6.chat_pb2",
        "xai_api",
        "GetCompletionsRequest",
        "GetChatCompletionChunk",
        "xai_sdk/proto/v6/chat_pb2_grpc.py",
    ),
    "yandex": Published(
        "yandex.cloud.ai.foundation_models.v1.text_generation.text_generation_service_pb2",
        "yandex.cloud.ai.foundation_models.v1",
        "CompletionRequest",
        "CompletionResponse",
        "yandex/cloud/ai/foundation_models/v1/text_generation/text_generation_service_pb2_grpc.py",
    ),
}


@cache
def _pool(published: Published) -> DescriptorPool:
    command = [python("schemas"), str(_PROGRAM), published.module, published.request, published.response]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(done.stdout).file:
        pool.Add(file)
    return pool
