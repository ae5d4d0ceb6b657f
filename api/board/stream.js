// Server-sent events by fetch, which can send a token as EventSource can not.

/** silence is how long nothing may come, in milliseconds, before a connection
 * counts as dead: the server says something every five seconds. */
export const silence = 8_000;

/** Parser makes events of the text of a stream, however it is cut. */
export class Parser {
  constructor() { this.rest = ""; this.clear(); }

  clear() { this.event = { type: "message", data: [], id: null, retry: null }; }

  /** feed returns the events that are complete. */
  feed(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    const events = [];
    for (const line of lines) {
      if (line === "") {
        const { type, data, id, retry } = this.event;
        if (data.length > 0 || retry !== null) events.push({ type, data: data.join("\n"), id, retry });
        this.clear();
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue; // a comment
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") this.event.type = value;
      else if (name === "data") this.event.data.push(value);
      else if (name === "id") this.event.id = value;
      else if (name === "retry" && /^\d+$/.test(value)) this.event.retry = Number(value);
    }
    return events;
  }
}

/** pause is how long to wait before the nth try in a row, in milliseconds. */
export function pause(tries, draw = Math.random()) {
  return Math.min(8_000, 500 * 2 ** Math.min(tries, 5)) * (0.5 + draw / 2);
}

/** follow reads one connection until it ends or signal aborts. take gets each
 * event. It throws what went wrong: an error with the status of the answer, or one
 * without if there was none. */
export async function follow(path, { headers, signal, take }) {
  const answer = await fetch(path, { headers, signal, cache: "no-store" });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(problem.title || "HTTP " + answer.status), { status: answer.status, problem });
  }
  const parser = new Parser();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const event of parser.feed(value)) take(event);
  }
}
