"""Every known rejection text of providers is recognised, with its position in the client's messages."""

import pytest

from gateway.core.conversation import Text, ToolCall, ToolResult, Turn
from gateway.history.rejections import classify_rejection

SENT = (
    Turn("user", (Text("hi"),), index=0),
    Turn("assistant", (ToolCall("call_1", "f", "{}"),), index=2),
    Turn("tool", (ToolResult("call_1", (Text("ok"),)),), index=3),
)

TEXTS = [
    (
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "TOOL_ORPHAN",
    ),
    ("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'", "TOOL_ORPHAN"),
    (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_1",
        "CALLS_UNANSWERED",
    ),
    (
        "each 'tool_call_id'. (insufficient tool messages following tool_calls message)",
        "CALLS_UNANSWERED",
    ),
    (
        "Invalid request: an assistant message with 'tool_calls' must be followed by tool messages",
        "CALLS_UNANSWERED",
    ),
    (
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, "
        "but got a string with length 43 instead.",
        "CALL_ID_SHAPE",
    ),
    ("Invalid 'tools': array too long. Expected an array with maximum length 128", "TOOLS_COUNT"),
    ("No tool call found for function call output with call_id call_1.", "TOOL_ID_UNKNOWN"),
    ("No tool output found for function call call_1.", "CALLS_UNANSWERED"),
    (
        "Missing `reasoning_content` field in the assistant message at message index 1. For more information",
        "REASONING_MISSING",
    ),
    ("The `reasoning_content` in the thinking mode must be passed back to the API.", "REASONING_MISSING"),
    (
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        "REASONING_MISSING",
    ),
    ("property 'reasoning_content' is unsupported", "REASONING_REFUSED"),
    ("invalid params, tool call result does not follow tool call (2013)", "TOOL_ORPHAN"),
    (
        '<400> InternalError.Algo.InvalidParameter: messages with role "tool" must be a response to a preceeding '
        'message with "tool_calls".',
        "TOOL_ORPHAN",
    ),
    ("did not have response messages: message[1].role", "CALLS_UNANSWERED"),
    (
        "Please ensure that the number of function response parts is equal to the number of function call parts of "
        "the function call turn.",
        "CALLS_UNANSWERED",
    ),
    (
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        "ROLE_ORDER",
    ),
    (
        "A conversation must start with a user message. Try again with a conversation that starts with a user message.",
        "FIRST_TURN_ROLE",
    ),
    ('messages: first message must use the "user" role', "FIRST_TURN_ROLE"),
    (
        "The first message (except the system message) of deepseek-reasoner must be a user message, but an assistant "
        "message detected.",
        "FIRST_TURN_ROLE",
    ),
    (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly",
        "SIGNATURE_MISSING",
    ),
    (
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        "REASONING_MISSING",
    ),
    (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "REASONING_MISSING",
    ),
    ("Corrupted thought signature.", "STATE_INVALID"),
    ("Invalid thought signature in function call part", "STATE_INVALID"),
    ("messages.1.content.0: Invalid `signature` in `thinking` block", "STATE_INVALID"),
    ("messages.3.content.1: Invalid `data` in `redacted_thinking` block", "STATE_INVALID"),
    (
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks "
        "must remain as they were in the original response.",
        "STATE_INVALID",
    ),
    (
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "STATE_INVALID",
    ),
    ("The encrypted content gAAA... could not be verified. Reason: decryption failed.", "STATE_INVALID"),
    (
        "GenerateContentRequest.contents[1].parts[0].function_response.name: Name cannot be empty.",
        "TOOL_NAME_MISSING",
    ),
    (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: call_1. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
        "CALLS_UNANSWERED",
    ),
    (
        "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: call_1. Each `tool_result` "
        "block must have a corresponding `tool_use` block in the previous message.",
        "TOOL_ID_UNKNOWN",
    ),
    ("each tool_use must have a single result", "TOOL_ID_DUPLICATE"),
    (
        "The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn.",
        "TOOL_ORPHAN",
    ),
    ("The toolConfig field must be defined when using toolUse and toolResult content blocks.", "TOOLS_MISSING"),
    ("Conversation blocks and tool result blocks cannot be provided in the same turn", "ROLE_ORDER"),
    (
        "The content field at messages.2.content.0.toolResult cannot be empty when status value is error.",
        "CONTENT_TYPE",
    ),
    ("Did not find 2 `tool_result` block(s) at the beginning of this message.", "CALLS_UNANSWERED"),
    ("Tool call id was abc but must be a-z, A-Z, 0-9, with a length of 9.", "CALL_ID_SHAPE"),
    ("Unexpected role 'user' after role 'tool'", "ROLE_ORDER"),
    ("Not the same number of function calls and responses", "CALLS_UNANSWERED"),
    ("Duplicate tool call id call_1 in tool results", "TOOL_ID_DUPLICATE"),
    ("Unexpected tool call id call_1 in tool results", "TOOL_ID_UNKNOWN"),
    (
        "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant",
        "ROLE_ORDER",
    ),
    (
        "'messages.2' : for 'role:tool' the following must be satisfied[('messages.2.content' : value must be a "
        "string)]",
        "CONTENT_TYPE",
    ),
    (
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of "
        "type api.ToolCallFunctionArguments",
        "CALL_ARGS_TYPE",
    ),
    ("System message must be at the beginning.", "ROLE_ORDER"),
    (
        "This model does not support assistant message prefill. The conversation must end with a user message.",
        "ROLE_ORDER",
    ),
    (
        "Cannot set `add_generation_prompt` to True when the last message is from the assistant. Consider using "
        "`continue_final_message` instead.",
        "ROLE_ORDER",
    ),
    (
        "Failed to deserialize the JSON body into the target type: messages[0].role: unknown variant `developer`, "
        "expected one of `system`, `user`, `assistant`, `tool`, `latest_reminder` at line 1 column 60",
        "ROLE_UNKNOWN",
    ),
    (
        "developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.['0].role'",
        "ROLE_UNKNOWN",
    ),
    ("Invalid enum value. Expected 'system' | 'user' | 'assistant' | 'tool', received 'developer'", "ROLE_UNKNOWN"),
    (
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'.",
        "TOOL_NAME_SHAPE",
    ),
    (
        "* GenerateContentRequest.tools[0].function_declarations[37].name: Invalid function name. Must start with a "
        "letter or an underscore.",
        "TOOL_NAME_SHAPE",
    ),
    ("library/gemma:latest does not support tools", "TOOLS_REFUSED"),
    (
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "TOOLS_REFUSED",
    ),
    ("Value looks like object, but can't find closing '}' symbol", "CALL_ARGS_TYPE"),
    (
        "After the optional system message, conversation roles must alternate user and assistant roles except for "
        "tool calls and results.",
        "ROLE_ORDER",
    ),
    # Roles.
    (
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as '
        "an input message role.",
        "ROLE_UNKNOWN",
    ),
    ("messages.0.role: Input should be 'user' or 'assistant'", "ROLE_UNKNOWN"),
    ("Unsupported value: 'messages[0].role' does not support 'system' with this model.", "ROLE_UNKNOWN"),
    ("Please use a valid role: user, model.", "ROLE_UNKNOWN"),
    ("Only user and assistant roles are supported!", "ROLE_UNKNOWN"),
    ("Unexpected message role.", "ROLE_UNKNOWN"),
    ("Incorrect role information", "ROLE_UNKNOWN"),
    ("unknown role: tool", "ROLE_UNKNOWN"),
    # Fields of the request.
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "PARAM_REFUSED",
    ),
    ("Unknown parameter: 'prompt_cache_key'.", "PARAM_REFUSED"),
    ("Your organization must be verified to generate reasoning summaries. Please go to the settings", "PARAM_REFUSED"),
    ("Invalid tool_choice type: 'object'. Supported string values: none, auto, required", "TOOL_CHOICE_REFUSED"),
    ("developer is not one of ['system', 'assistant', 'user', 'tool', 'function'] - 'messages.0.role'", "ROLE_UNKNOWN"),
    ("Unrecognized request argument supplied: verbosity", "PARAM_REFUSED"),
    ("The 'metadata' parameter is only allowed when 'store' is enabled.", "PARAM_REFUSED"),
    ("context_management: Extra inputs are not permitted", "PARAM_REFUSED"),
    ("body.parallel_tool_calls: Extra inputs are not permitted", "PARAM_REFUSED"),
    ("property 'prompt_cache_key' is unsupported", "PARAM_REFUSED"),
    ('Invalid JSON payload received. Unknown name "store": Cannot find field.', "PARAM_REFUSED"),
    ("Argument not supported on this model: stop", "PARAM_REFUSED"),
    ("body.messages.1.assistant.reasoning_content: Extra inputs are not permitted", "REASONING_REFUSED"),
    (
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
        "supported.",
        "SAMPLING_REFUSED",
    ),
    ("`temperature` and `top_p` cannot both be specified for this model.", "SAMPLING_REFUSED"),
    ("`temperature` may only be set to 1 when thinking is enabled.", "SAMPLING_REFUSED"),
    ("invalid temperature: only 1 is allowed for this model", "SAMPLING_REFUSED"),
    ("Model grok-4 does not support parameter presencePenalty.", "SAMPLING_REFUSED"),
    ("Thinking may not be enabled when tool_choice forces tool use.", "TOOL_CHOICE_REFUSED"),
    ("deepseek-reasoner does not support this tool_choice", "TOOL_CHOICE_REFUSED"),
    ("tool_choice 'required' is incompatible with thinking enabled", "TOOL_CHOICE_REFUSED"),
    (
        "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required "
        "or object in thinking mode",
        "TOOL_CHOICE_REFUSED",
    ),
    ("'tool_choice' is only allowed when 'tools' are specified.", "TOOL_CHOICE_REFUSED"),
    (
        "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use "
        "/v1/responses instead.",
        "EFFORT_REFUSED",
    ),
    ("Thinking mode does not support this tool_choice", "TOOL_CHOICE_REFUSED"),
    ("tool_choice: any is not supported for this model", "TOOL_CHOICE_REFUSED"),
    ("This model does not support the effort parameter.", "EFFORT_REFUSED"),
    ("`reasoning_effort` must be one of `low`, `medium`, or `high`", "EFFORT_REFUSED"),
    ("reasoning_effort: Input should be 'low', 'medium' or 'high'", "EFFORT_REFUSED"),
    ("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.", "EFFORT_REFUSED"),
    ("Thinking level is not supported for this model.", "EFFORT_REFUSED"),
    ("thinking.type.enabled is not supported for this model. Use thinking.type.adaptive", "THINKING_REFUSED"),
    ("adaptive thinking is not supported on this model", "THINKING_REFUSED"),
    ("parameter.enable_thinking must be set to false for non-streaming calls", "THINKING_REFUSED"),
    ("This response_format type is unavailable now", "FORMAT_REFUSED"),
    ("'response_format.type' must be 'json_schema' or 'text'", "FORMAT_REFUSED"),
    ("Function calling with a response mime type: 'application/json' is unsupported", "FORMAT_REFUSED"),
    ("Invalid schema for function 'f': In context=(), object schema missing properties.", "TOOL_SCHEMA_REFUSED"),
    (
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
        "TOOL_SCHEMA_REFUSED",
    ),
    ("invalid params, function parameters is empty (2013)", "TOOL_SCHEMA_REFUSED"),
    ("tools: Tool names must be unique.", "TOOL_SCHEMA_REFUSED"),
    ("[] is too short - 'tools'", "PARAM_REFUSED"),
    ("tools: List should have at least 1 item after validation, not 0", "PARAM_REFUSED"),
    ("tools[0].type: unknown variant `custom`, expected `function`", "TOOL_KIND_REFUSED"),
    (
        "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 "
        "instead.",
        "STOP_REFUSED",
    ),
    ("stop_sequences: each stop sequence must contain non-whitespace", "STOP_REFUSED"),
    ("The model doesn't support the stopSequences field", "STOP_REFUSED"),
    (
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
        "LIMIT_REFUSED",
    ),
    ("`max_tokens` must be greater than `thinking.budget_tokens`.", "LIMIT_REFUSED"),
    (
        "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with "
        "length 100 instead.",
        "PARAM_REFUSED",
    ),
    ("The 'stream_options' is only allowed when 'stream' is enabled.", "PARAM_REFUSED"),
    ("logprobs is not supported with this model", "PARAM_REFUSED"),
    ("`logit_bias` is not supported", "PARAM_REFUSED"),
    ('{"detail": [{"type": "extra_forbidden", "loc": ["body", "store"]}]}', "PARAM_REFUSED"),
    ("<400> InternalError.Algo.InvalidParameter: Range of temperature should be [0, 2)", "SAMPLING_REFUSED"),
    ("A maximum of 4 blocks with cache_control may be provided. Found 5.", "CACHE_MARKS_REFUSED"),
    ("cache_control cannot be set for empty text blocks", "CACHE_MARKS_REFUSED"),
    ("role.developer is not supported", "ROLE_UNKNOWN"),
    ("reasoning_content is not supported", "REASONING_REFUSED"),
    ("messages: text content blocks must contain non-whitespace text", "CONTENT_TYPE"),
    ("all messages must have non-empty content except for the optional final assistant message", "CONTENT_TYPE"),
    ("Unable to submit request because it must have a text parameter.", "CONTENT_TYPE"),
    ("GenerateContentRequest.contents: contents is not specified", "CONTENT_TYPE"),
    # Images.
    ("Could not process image", "IMAGE_REFUSED"),
    ("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6789012 bytes > 5242880", "IMAGE_REFUSED"),
    ("The image data you provided does not represent a valid image.", "IMAGE_REFUSED"),
    ("Unable to process input image. Please retry or report in the help forum.", "IMAGE_REFUSED"),
    ("unknown variant `image_url`, expected `text`", "IMAGE_REFUSED"),
    ("No endpoints found that support image input", "IMAGE_REFUSED"),
    ("At most 0 image(s) may be provided in one prompt.", "IMAGE_REFUSED"),
    ("local-model is not a multimodal model", "IMAGE_REFUSED"),
    ("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "IMAGE_REFUSED"),
    ("Invalid content type. image_url is only supported by certain models.", "IMAGE_REFUSED"),
    ("This model does not support image input.", "IMAGE_REFUSED"),
]


@pytest.mark.parametrize(("text", "rule"), TEXTS)
def test_known_refusals_are_understood(text: str, rule: str) -> None:
    rejection = classify_rejection(text, None, SENT)
    assert rejection is not None
    assert rejection.rule == rule
    assert rejection.advice


def test_an_unknown_text_stays_unclassified() -> None:
    assert classify_rejection("Request contains an invalid argument", None, SENT) is None


def test_the_providers_index_is_told_as_the_clients() -> None:
    text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    rejection = classify_rejection(text, "messages.[2].role", SENT)
    assert rejection is not None
    assert rejection.index == 3


def test_an_index_outside_of_what_was_sent_is_not_told() -> None:
    rejection = classify_rejection("Unexpected role 'user' after role 'tool' messages[9]", None, SENT)
    assert rejection is not None
    assert rejection.index is None


@pytest.mark.parametrize(
    "text",
    [
        "The following tool_call_ids did not have response messages: call_1",
        "No tool call found for function call output with call_id call_1.",
        "Duplicate tool call id call_1 in tool results",
    ],
)
def test_the_call_is_named_when_the_text_names_it(text: str) -> None:
    rejection = classify_rejection(text, None, SENT)
    assert rejection is not None
    assert rejection.tool_call_id == "call_1"
