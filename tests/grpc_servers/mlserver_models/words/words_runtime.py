"""A runtime of MLServer that repeats the words of the prompt's last line: a message for each of them."""

from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.errors import InferenceError
from mlserver.types import InferenceRequest, InferenceResponse


class WordsRuntime(MLModel):  # type: ignore[misc] # MLServer is not installed beside the tests
    """The model `words`. Its tensors are `prompt` and `output`."""

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        """Answer each request with a message for each word."""
        async for payload in payloads:
            (tensor,) = payload.inputs
            assert tensor.name == "prompt"
            (prompt,) = StringCodec.decode_input(tensor)
            *_, last = [line for line in prompt.splitlines() if line.removeprefix("Assistant:").strip()]
            words = last.removeprefix("User: ").split()
            if words[0] == "fail":
                raise InferenceError("the model has failed")
            for number, word in enumerate(words):
                output = StringCodec.encode_output("output", [f" {word}" if number else word])
                yield InferenceResponse(model_name=self.name, outputs=[output])
