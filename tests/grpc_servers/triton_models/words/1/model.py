"""A decoupled model of Triton with the tensors of its vLLM backend: it repeats the words of the prompt's last line."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as triton

_FINAL = triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """The class that Triton looks for. (Any: its types exist only inside of it.)"""

    def initialize(self, args: dict[str, str]) -> None:
        """Remember the folder of the model, where `cancelled` is written when a client has left."""
        self._folder = Path(args["model_repository"])

    def execute(self, requests: list[Any]) -> None:
        """Answer each request with a message for each word."""
        for request in requests:
            sender = request.get_response_sender()
            *_, last = [
                line for line in _text(request, "text_input").splitlines() if line.strip() not in ("", "Assistant:")
            ]
            words = last.removeprefix("User: ").split()
            if words[0] == "fail":
                # As the vLLM backend does: a failed message has a text too.
                error = triton.TritonError("the model has failed")
                sender.send(triton.InferenceResponse([_bytes("text_output", "N/A")], error), flags=_FINAL)
            else:
                self._answer(request, sender, words)

    def _answer(self, request: Any, sender: Any, words: list[str]) -> None:
        limit = json.loads(_text(request, "sampling_parameters") or "{}").get("max_tokens", len(words))
        said = words[:limit]
        for number, word in enumerate(said):
            last = number + 1 == len(said)
            end = ("length" if limit < len(words) else "stop") if last else "None"
            response = triton.InferenceResponse(_tensors(request, f" {word}" if number else word, end, len(words)))
            sender.send(response, flags=_FINAL if last else 0)
            if word == "wait":
                self._wait(sender)
                return

    def _wait(self, sender: Any) -> None:
        while not sender.is_cancelled():
            time.sleep(0.01)
        (self._folder / "cancelled").touch()
        cancelled = triton.TritonError("the request was cancelled", triton.TritonError.CANCELLED)
        sender.send(triton.InferenceResponse(error=cancelled), flags=_FINAL)


def _tensors(request: Any, text: str, end: str, read: int) -> list[Any]:
    """The tensors of a message, as far as the request has asked for them."""
    asked = {
        "return_finish_reason": _bytes("finish_reason", end),
        "return_num_input_tokens": triton.Tensor("num_input_tokens", np.array([read], dtype=np.uint32)),
        "return_num_output_tokens": triton.Tensor("num_output_tokens", np.array([1], dtype=np.uint32)),
    }
    return [_bytes("text_output", text), *(tensor for name, tensor in asked.items() if _flag(request, name))]


def _text(request: Any, name: str) -> str:
    tensor = triton.get_input_tensor_by_name(request, name)
    return "" if tensor is None else str(tensor.as_numpy()[0].decode())


def _flag(request: Any, name: str) -> bool:
    tensor = triton.get_input_tensor_by_name(request, name)
    return tensor is not None and bool(tensor.as_numpy()[0])


def _bytes(name: str, text: str) -> Any:
    return triton.Tensor(name, np.array([text.encode()], dtype=np.object_))
