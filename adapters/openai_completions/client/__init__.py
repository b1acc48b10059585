"""The dialect of OpenAI's older completions: a prompt, answered as SSE or as one JSON response."""
