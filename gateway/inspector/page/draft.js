/** The request that is being written: as a form, of which a body is made, or as the body itself. */

const TO_CHAT = "/v1/chat/completions";

/** So many bytes the gateway takes of the page. */
export const MOST_BYTES = 2 ** 20;

export const ROLES = ["system", "user", "assistant"];

export const EXAMPLE_TOOL = `[
  {
    "type": "function",
    "function": {
      "name": "weather",
      "description": "The weather of a city",
      "parameters": {
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"]
      }
    }
  }
]`;

/**
 * A new draft for the first of these models. `kind` says which of both is shown and sent; `made`: the body is that of
 * the form as it is now, or of a kept request, whose id is `like`.
 */
export function newDraft(models) {
  const model = models.find((name) => !name.includes("*")) ?? "";
  const form = { model, messages: [{ role: "user", content: "Hello" }], tools: "", stream: true };
  return { kind: "form", form, path: TO_CHAT, body: "", like: null, made: false };
}

/** The draft that edits a kept request: `received` as in the contract. Throws Error where its body is no whole text. */
export function draftOf(draft, like, received) {
  const body = received.views.json ?? received.views.text;
  if (received.cut || body === undefined) {
    throw new Error("Its body cannot be edited here: it is larger than 1 MB, or no text.");
  }
  return { ...draft, kind: "json", path: received.path, body, like, made: true };
}

/** The draft with these fields of its form changed. */
export function withForm(draft, fields) {
  return { ...draft, form: { ...draft.form, ...fields }, made: false };
}

/** The draft with the form, or with the body; what the form says now becomes the body. Throws Error as `bodyOf`. */
export function withKind(draft, kind) {
  if (kind === "form" || draft.made) return { ...draft, kind };
  return { ...draft, kind, path: TO_CHAT, body: bodyOf(draft), like: null, made: true };
}

/** What is sent: {path, body, like}. Throws Error as `bodyOf`. */
export function requestOf(draft) {
  if (draft.kind === "json") return { path: draft.path, body: draft.body, like: draft.like };
  return { path: TO_CHAT, body: bodyOf(draft), like: null };
}

// The body that the form makes: chat completions. Throws Error for tools that are no list in JSON.
function bodyOf({ form: { model, messages, tools, stream } }) {
  const body = { model, messages };
  if (tools.trim()) body.tools = readTools(tools);
  body.stream = stream;
  // Else a stream says no tokens.
  if (stream) body.stream_options = { include_usage: true };
  return JSON.stringify(body, null, 2);
}

function readTools(text) {
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    throw new Error(`The tools are not JSON: ${error.message}.`);
  }
  if (!Array.isArray(tools)) throw new Error("The tools must be a list: [{...}].");
  return tools;
}
