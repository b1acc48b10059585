
Ç
localai.protobackend"¹
Message
role (	Rrole
content (	Rcontent
name (	Rname 
tool_call_id (	R
toolCallId+
reasoning_content (	RreasoningContent

tool_calls (	R	toolCalls"–
PredictOptions
Seed (RSeed
Tokens (RTokens
TopK (RTopK 
Temperature	 (RTemperature 
StopPrompts (	RStopPrompts*
FrequencyPenalty (RFrequencyPenalty(
PresencePenalty (RPresencePenalty
TopP  (RTopP2
UseTokenizerTemplate+ (RUseTokenizerTemplate,
Messages, (2.backend.MessageRMessages
Tools0 (	RTools

ToolChoice1 (	R
ToolChoice"g
ToolCallDelta
index (Rindex
id (	Rid
name (	Rname
	arguments (	R	arguments"‰
	ChatDelta
content (	Rcontent+
reasoning_content (	RreasoningContent5

tool_calls (2.backend.ToolCallDeltaR	toolCalls"“
Reply
message (Rmessage
tokens (Rtokens#
prompt_tokens (RpromptTokens3
chat_deltas (2.backend.ChatDeltaR
chatDeltas2E
Backend:
PredictStream.backend.PredictOptions.backend.Reply0bproto3