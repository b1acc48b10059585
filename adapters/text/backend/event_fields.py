"""The fields of the events of the wires that have a reference. Source: llama.cpp, server README, `POST /completion`."""

from collections.abc import Mapping
from typing import Final

from gateway.adapter import EventFields

EVENT_FIELDS: Final[Mapping[str, EventFields]] = {
    "llama_cpp": {
        "": frozenset(
            [
                "index",
                "content",
                "tokens",
                "stop",
                "id_slot",
                "slot_id",
                "model",
                "tokens_predicted",
                "tokens_evaluated",
                "tokens_cached",
                "truncated",
                "stop_type",
                "stopping_word",
                "stopped_eos",
                "stopped_limit",
                "stopped_word",
                "timings",
                "timings_per_token",
                "has_new_line",
                "prompt",
                "generation_settings",
                "completion_probabilities",
                "probs",
                "prompt_progress",
                "return_progress",
                "multimodal",
                "error",
            ]
        ),
    }
}
