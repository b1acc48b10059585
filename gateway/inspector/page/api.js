/** Asks the gateway's inspector below /inspect/api. The admin key is kept in this module's memory only. */

const API = new URL("../api/", import.meta.url);

let adminKey = "";

/** The gateway refused. `status` is the HTTP status (0: no connection), `code` that of its error object. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Sends `key` with every request from now on; "" sends none. */
export function useAdminKey(key) {
  adminKey = key;
}

/**
 * Returns the response of `path`; `query` leaves out null and "", and `text` is a `body` that is JSON text already.
 * Throws ApiError, or AbortError by `signal`.
 */
export async function ask(path, { query = {}, signal, method = "GET", body, text } = {}) {
  const url = new URL(path, API);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.append(name, value);
  }
  // fetch would fail as it does without a connection.
  if (!/^[ -~]*$/.test(adminKey)) throw new ApiError(401, "invalid_admin_key", "No header can carry this key.");
  const headers = {};
  if (adminKey) headers.authorization = `Bearer ${adminKey}`;
  const content = body === undefined ? text : JSON.stringify(body);
  if (content !== undefined) headers["content-type"] = "application/json";
  const options = { method, headers, signal, body: content };
  const response = await fetch(url, { ...options, cache: "no-store", credentials: "omit", redirect: "error" }).catch(
    noConnection,
  );
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Returns the JSON of a response; see `ask`. */
export async function askJson(path, options) {
  return (await ask(path, options)).json();
}

function noConnection(error) {
  if (error.name === "AbortError") throw error;
  throw new ApiError(0, "no_connection", "The gateway does not answer.");
}

async function refusal(response) {
  const { error } = await response.json().catch(() => ({}));
  const message = error?.message ?? `The gateway answers ${response.status} without an error object.`;
  return new ApiError(response.status, error?.code ?? "", message);
}
