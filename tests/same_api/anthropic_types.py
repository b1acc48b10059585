"""Prints values of Anthropic's published types, for `anthropic_messages.json`: run it where the SDK is installed.

python -m tests.same_api.anthropic_types > tests/same_api/anthropic_messages.json
"""

import importlib
import json
import sys
from typing import Any

from tests.same_api.samples import hints, samples


def published() -> dict[str, Any]:  # Any: JSON
    """Returns values of the beta types, which hold all others, by what they are part of."""
    beta = importlib.import_module("anthropic.types.beta")
    request = importlib.import_module("anthropic.types.beta.message_create_params").MessageCreateParamsBase
    fields = {name: samples(hint) for name, hint in hints(request).items() if name != "messages"}
    parameter = importlib.import_module("anthropic.types.beta.beta_content_block_param").BetaContentBlockParam
    delta = importlib.import_module("anthropic.types.beta.beta_raw_content_block_delta").BetaRawContentBlockDelta
    return {
        "sdk": f"anthropic {importlib.import_module('anthropic').__version__}",
        "fields": {name: values for name, values in fields.items() if values and name not in _HEADERS},
        "blocks": samples(parameter),
        "message": samples(beta.BetaMessage)[0] | {"content": []},
        "content": samples(beta.BetaContentBlock),
        "deltas": samples(delta),
        "message_delta": samples(beta.BetaRawMessageDeltaEvent)[0],
    }


# Arguments of the SDK's method that it sends as headers.
_HEADERS = frozenset({"betas", "workspace_id", "user_profile_id"})


if __name__ == "__main__":
    json.dump(published(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
