
’
sglang.protosglang.runtime.v1",
OpenAIRequest
	json_body (RjsonBody"N
OpenAIStreamChunk

json_chunk (R	jsonChunk
finished (Rfinished2i
SglangServiceX
ChatComplete .sglang.runtime.v1.OpenAIRequest$.sglang.runtime.v1.OpenAIStreamChunk0bproto3