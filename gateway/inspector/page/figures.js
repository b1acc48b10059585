/** Writes numbers as people read them: times, sizes, counts, prices. */

/** 0.31 -> "0.3 ms", 910 -> "910 ms", 1240 -> "1.24 s", 125000 -> "2 min 5 s". */
export function duration(ms) {
  if (ms === null || ms === undefined) return "-";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

/** 214 -> "214 B", 8300 -> "8.1 KB". */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const [unit, divisor] = bytes < 1048576 ? ["KB", 1024] : ["MB", 1048576];
  const value = bytes / divisor;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${unit}`;
}

/** 1204 -> "1,204"; null -> "-". */
export function count(number) {
  return number === null || number === undefined ? "-" : number.toLocaleString("en-US");
}

/** (1, "message") -> "1 message", (2, "message") -> "2 messages". */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A Unix time -> "12:00:01", in the time zone of the viewer. */
export function clock(unix) {
  return new Date(unix * 1000).toLocaleTimeString("en-GB");
}

/** A Unix time -> "2026-11-23 12:00:01". */
export function date(unix) {
  return new Date(unix * 1000).toLocaleString("sv-SE");
}

/** {amount, currency, estimated} -> "0.0012 EUR", with "~" before an estimate; null -> "-". */
export function price(cost) {
  if (!cost) return "-";
  const digits = cost.amount > 0 && cost.amount < 0.01 ? cost.amount.toPrecision(2) : cost.amount.toFixed(2);
  return `${cost.estimated ? "~" : ""}${digits} ${cost.currency}`;
}

/** Prompt and completion tokens -> "28/47", with "~" before estimates. */
export function tokens(summary) {
  const { prompt_tokens: prompt, completion_tokens: completion } = summary;
  if (prompt === null && completion === null) return "-";
  return `${summary.tokens_estimated ? "~" : ""}${count(prompt)}/${count(completion)}`;
}
