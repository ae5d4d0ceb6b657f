// The page: it follows the stream, and shows what came and how old it is. What it
// decides by is in the other modules.

import { judge } from "./freshness.js";
import { Series, consumed } from "./series.js";
import { follow, pause, silence } from "./stream.js";
import { languages, Words } from "./words.js";
import { legs, stuckQuestions, worst } from "./deliveries.js";

const window5 = 5 * 60_000;   // for changes
const listEvery = 10_000;     // between two looks at stuck deliveries
const patience = 5_000;       // for an answer that is no stream
const mostStuck = 20;

export class Board {
  /** now is a clock in milliseconds, for tests. */
  constructor(document, now = () => Date.now()) {
    this.document = document;
    this.window = document.defaultView;
    this.now = now;
    this.seen = null;           // the last answer: {at, asOf}
    this.answer = null;
    this.trouble = "";          // what is wrong with the connection
    this.statuses = null;       // of /v1/statuses
    this.dimensions = [];
    this.series = new Map();    // by "live", "closed" and status
    this.read = new Series();   // records consumed
    this.lastID = "";
    this.left = false;          // nobody looks
    this.said = "";
    this.stuck = null;          // what was found last: {rows, total}
    this.found = null;          // what is shown of a search
    this.at = (id) => document.getElementById(id);
    this.address = new URLSearchParams(this.window.location.search);
  }

  /** start shows the page and follows the stream for ever. */
  start() {
    this.speak();
    this.listen();
    this.run();
    this.window.setInterval(() => this.tick(), 1000);
    this.watchStuck();
  }

  // ---- what the reader chose: it stands in the address

  get filter() {
    const [dimension] = this.dimensions.filter((d) => this.address.has(d));
    return dimension === undefined ? {} : { [dimension]: this.address.get(dimension) };
  }

  choose(name, value) {
    if (value === null) this.address.delete(name);
    else this.address.set(name, value);
    const query = this.address.toString();
    this.window.history.replaceState(null, "", this.window.location.pathname + (query ? "?" + query : ""));
  }

  speak() {
    const wanted = this.address.get("lang") ?? this.window.navigator.language.slice(0, 2);
    this.words = new Words(languages.includes(wanted) ? wanted : "en");
    const root = this.document.documentElement;
    root.lang = this.words.language;
    const theme = this.address.get("theme");
    root.dataset.theme = ["light", "dark"].includes(theme) ? theme : "auto";
    this.document.title = this.words.text("title");
    const values = { window: this.answer ? this.words.span(this.answer.closed_window_seconds) : "–" };
    for (const e of this.document.querySelectorAll("[data-text]")) e.textContent = this.words.text(e.dataset.text, values);
    for (const e of this.document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", this.words.text(e.dataset.label));
    this.at("closed-title").textContent = this.words.text("closedBy", values);
    this.at("language").value = this.words.language;
    this.at("theme").value = root.dataset.theme;
    this.said = "";
    this.render();
    this.showStuck();
    this.showFound();
  }

  listen() {
    this.at("language").addEventListener("change", (e) => { this.choose("lang", e.target.value); this.speak(); });
    this.at("theme").addEventListener("change", (e) => { this.choose("theme", e.target.value === "auto" ? null : e.target.value); this.speak(); });
    this.at("dimension").addEventListener("change", (e) => this.narrow(JSON.parse(e.target.value)));
    this.at("login").addEventListener("submit", (e) => {
      e.preventDefault();
      this.window.sessionStorage.setItem("token", this.at("token").value.trim());
      this.at("token").value = "";
      this.reconnect();
    });
    this.at("search").addEventListener("submit", (e) => { e.preventDefault(); this.find(this.at("id").value.trim()); });
    this.document.addEventListener("keydown", (e) => {
      if (e.key === "/" && !/^(input|select|textarea)$/i.test(e.target.tagName)) { e.preventDefault(); this.at("id").focus(); }
    });
    // After a sleep the connection may be dead without anybody having noticed.
    const wake = () => {
      if (this.document.hidden) return;
      this.tick();
      if (this.trouble || this.left) this.reconnect();
    };
    for (const name of ["online", "pageshow", "focus"]) this.window.addEventListener(name, wake);
    this.window.addEventListener("pagehide", () => this.leave());
    this.document.addEventListener("visibilitychange", () => { if (this.document.hidden) this.leave(); else wake(); });
  }

  narrow(choice) {
    for (const d of this.dimensions) this.choose(d, d === choice?.dimension ? choice.value : null);
    this.series.clear();
    this.answer = this.stuck = null;
    this.lastID = "";
    this.reconnect();
  }

  // ---- the stream

  headers(more = {}) {
    const token = this.window.sessionStorage.getItem("token");
    return token ? { Authorization: "Bearer " + token, ...more } : more;
  }

  /** get reads one answer that is no stream. */
  async get(path) {
    const answer = await fetch(path, { headers: this.headers(), cache: "no-store", signal: AbortSignal.timeout(patience) });
    if (answer.ok) return answer.json();
    const problem = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(problem.title || "HTTP " + answer.status), { status: answer.status, problem });
  }

  async run() {
    for (let tries = 0; ; tries++) {
      while (this.left) await new Promise((resolve) => { this.wakeUp = resolve; });
      this.connection = new AbortController();
      this.heard = this.now();
      let wait = null;
      try {
        if (!this.statuses) await this.learn();
        const query = new URLSearchParams(this.filter).toString();
        await follow("v1/counts/stream" + (query ? "?" + query : ""), {
          headers: this.headers(this.lastID ? { "Last-Event-ID": this.lastID } : {}),
          signal: this.connection.signal,
          take: (event) => { this.heard = this.now(); tries = 0; wait = event.retry ?? wait; this.take(event); },
        });
        this.fails("noConnection"); // the server has ended it, as it does when it goes
      } catch (error) {
        this.refused(error);
        if (error.status === 400 && this.lastID) this.lastID = ""; // of a deployment that is gone
      }
      this.tick();
      await this.rest(this.hurry ? 0 : wait ?? pause(tries));
      this.hurry = false;
    }
  }

  rest(ms) {
    return new Promise((resolve) => {
      const timer = this.window.setTimeout(resolve, ms);
      this.wakeUp = () => { this.window.clearTimeout(timer); resolve(); };
    });
  }

  /** leave ends the connection until somebody looks again: over HTTP/1.1 all tabs
   * of a browser share six to a host. */
  leave() {
    this.left = true;
    this.connection?.abort();
  }

  reconnect() {
    this.left = false;
    this.hurry = true;
    this.connection?.abort();
    this.wakeUp?.();
  }

  /** learn asks for what does not change while the server lives. */
  async learn() {
    const { statuses, dimensions } = await this.get("v1/statuses");
    this.statuses = statuses;
    this.dimensions = dimensions;
    await this.offer();
  }

  /** offer fills the picker with the values that exist, but not under the hand of
   * who is choosing. */
  async offer() {
    const select = this.at("dimension");
    const options = [["null", this.words.text("everything")]];
    for (const dimension of this.dimensions) {
      const { groups } = await this.get("v1/counts?by=" + dimension).catch(() => ({ groups: [] }));
      for (const group of groups) {
        const value = group[dimension];
        options.push([JSON.stringify({ dimension, value }), dimension + ": " + (value || this.words.text("none"))]);
      }
    }
    const [chosen] = Object.entries(this.filter);
    const current = chosen ? JSON.stringify({ dimension: chosen[0], value: chosen[1] }) : "null";
    if (chosen && !options.some(([key]) => key === current)) options.push([current, chosen.join(": ")]);
    this.at("picker").hidden = this.dimensions.length === 0;
    const offered = JSON.stringify(options);
    if (select.dataset.offered === offered || (this.document.activeElement === select && select.length > 1)) return;
    select.dataset.offered = offered;
    select.replaceChildren(...options.map(([key, text]) => {
      const option = this.document.createElement("option");
      option.value = key;
      option.textContent = text;
      return option;
    }));
    select.value = current;
  }

  take(event) {
    if (event.id !== null) this.lastID = event.id;
    if (event.type === "counts") this.counts(JSON.parse(event.data));
    else if (event.type === "as_of") this.asOf(JSON.parse(event.data));
    else if (event.type === "unavailable") this.fails("noAnswer");
  }

  /** counts takes in new numbers. */
  counts(answer) {
    const first = this.answer === null;
    this.answer = answer;
    this.asOf(answer.as_of);
    const at = this.now();
    const add = (name, value) => {
      if (!this.series.has(name)) this.series.set(name, new Series());
      this.series.get(name).add(at, value);
    };
    add("live", answer.live);
    for (const [name, n] of Object.entries(answer.counts)) add(name, n);
    this.read.add(at, consumed(answer.as_of.position));
    if (first) { this.speak(); this.lookForStuck(); }
    this.render();
  }

  /** asOf takes in how old they are. */
  asOf(asOf) {
    this.seen = { at: this.now(), asOf: asOf.as_of ?? asOf };
    this.trouble = "";
    this.at("login").hidden = true;
    this.judge();
  }

  refused(error) {
    if (error.name === "AbortError") return; // our own doing: who did it has said why
    if (error.status === 401) {
      this.at("login-why").textContent = this.words.text(this.window.sessionStorage.getItem("token") ? "wrongToken" : "needToken");
      this.at("login").hidden = false;
    }
    if (error.status === 503) this.fails("recovering");
    else this.fails(error.status ? error.message : "noConnection");
  }

  fails(trouble) {
    this.trouble = trouble;
    this.judge();
  }

  /** tick is called every second. */
  tick() {
    if (!this.trouble && this.now() - this.heard > silence) {
      this.fails("noAnswer");
      this.reconnect();
    }
    this.judge();
  }

  // ---- what is shown

  judge() {
    const w = this.words, now = this.now();
    const { state, age, why } = judge(this.seen, now, this.trouble);
    const body = this.document.body.classList;
    body.toggle("not-current", state === "notCurrent");
    body.toggle("waiting", state === "waiting");
    const name = w.text(state === "waiting" ? "connecting" : state);
    put(this.at("state"), name);
    const parts = [];
    if (why && why !== "old") parts.push(why in w.texts ? w.text(why) : why);
    if (age !== null) parts.push(state === "current" ? w.text("atMost", { age: w.age(age) }) : w.text("old", { age: w.age(age) }));
    if (state === "notCurrent" && this.seen) parts.push(w.text("shownFrom", { time: w.time(new Date(this.seen.at), new Date(now)) }));
    if (this.seen?.asOf.lag_records > 0) parts.push(w.text("behind", { n: w.number(this.seen.asOf.lag_records) }));
    put(this.at("age"), (parts.length ? "· " : "") + parts.join(" · "));
    const event = this.seen?.asOf.event_time;
    put(this.at("last-event"), !this.seen ? "" : "· " + (event ? w.text("lastEvent", { time: w.time(new Date(event), new Date(now)) }) : w.text("noEvents")));
    if (this.said !== state) { // each second would be too much to listen to
      this.said = state;
      this.at("announcement").textContent = name + (why && why in w.texts ? ": " + w.text(why) : "");
    }
    if (this.seen) {
      put(this.at("position"), this.seen.asOf.position || "0");
      put(this.at("replica"), this.seen.asOf.replica ? " · " + w.text("answeredBy", { replica: this.seen.asOf.replica }) : "");
    }
  }

  render() {
    this.judge();
    const a = this.answer, w = this.words;
    if (!a) return;
    const now = this.now(), read = this.read.change(now, 60_000);
    put(this.at("total"), w.number(a.live));
    put(this.at("change"), w.change(this.series.get("live").change(now, window5)));
    put(this.at("closed-total"), w.number(Object.values(a.closed).reduce((sum, n) => sum + n, 0)));
    put(this.at("flow"), w.number(read && Math.max(0, read)));
    this.tiles(this.at("live"), a.counts);
    this.tiles(this.at("closed"), a.closed);
  }

  label(name) {
    const labels = this.statuses?.find((s) => s.name === name)?.labels ?? {};
    return labels[this.words.language] ?? labels.en ?? name;
  }

  /** tiles brings a list up to date: one tile for each status, in the order of the
   * answer, which is that of the lifecycle. */
  tiles(list, counts) {
    const names = Object.keys(counts), d = this.document;
    if (Array.from(list.children, (tile) => tile.dataset.status).join() !== names.join()) {
      list.replaceChildren(...names.map((name) => {
        const tile = d.createElement("li"), trend = d.createElement("span");
        tile.dataset.status = name;
        const label = d.createElement("span");
        label.className = "name";
        trend.className = "trend";
        const svg = d.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.setAttribute("viewBox", "0 0 100 24");
        svg.setAttribute("preserveAspectRatio", "none");
        svg.setAttribute("aria-hidden", "true");
        svg.append(d.createElementNS("http://www.w3.org/2000/svg", "polyline"));
        trend.append(svg, d.createElement("i"));
        tile.append(label, d.createElement("b"), trend);
        return tile;
      }));
    }
    names.forEach((name, i) => {
      const tile = list.children[i];
      put(tile.querySelector(".name"), this.label(name));
      put(tile.querySelector("b"), this.words.number(counts[name]));
      const series = this.series.get(name);
      if (!series) return;
      if (tile.dataset.drawn !== String(series.newest)) { // a line is drawn once in a step
        tile.dataset.drawn = series.newest;
        tile.querySelector("polyline").setAttribute("points", series.points());
      }
      const moved = series.change(this.now(), window5);
      put(tile.querySelector("i"), moved ? this.words.change(moved) : "");
    });
  }

  // ---- stuck deliveries

  async watchStuck() {
    for (;;) {
      await this.lookForStuck();
      if (this.statuses) await this.offer();
      await new Promise((resolve) => this.window.setTimeout(resolve, listEvery));
    }
  }

  async lookForStuck() {
    if (!this.statuses || !this.answer) return;
    try {
      const filter = JSON.stringify(this.filter);
      const questions = stuckQuestions(this.statuses, this.filter, mostStuck);
      const answers = await Promise.all(questions.map((q) => this.get(q)));
      if (filter !== JSON.stringify(this.filter)) return; // of what was chosen before
      this.stuck = worst(answers, this.statuses, this.now(), mostStuck);
      this.showStuck();
    } catch { /* the stream says what is wrong with the connection */ }
  }

  showStuck() {
    const w = this.words, { rows, total } = this.stuck ?? { rows: [], total: 0 };
    const limits = this.statuses?.some((s) => s.stuck_after_seconds > 0) ?? true;
    put(this.at("stuck-why"), !limits ? w.text("noStuckLimits") : !this.stuck ? "" :
      total === 0 ? w.text("noneStuck") : w.text("mostStuck", { n: w.number(rows.length) }));
    this.at("stuck-total").hidden = total === 0;
    put(this.at("stuck-total"), w.number(total));
    this.at("stuck").hidden = total === 0;
    const body = this.at("stuck").tBodies[0];
    const focused = this.document.activeElement?.closest?.("#stuck button")?.textContent;
    body.replaceChildren(...rows.map(({ delivery, seconds, limit }) => {
      const row = this.document.createElement("tr");
      const open = this.document.createElement("button");
      open.type = "button";
      open.textContent = delivery.delivery_id;
      open.addEventListener("click", () => { this.at("id").value = delivery.delivery_id; this.find(delivery.delivery_id); });
      row.append(this.cell(open), this.cell(this.label(delivery.status)), this.cell(w.age(seconds), "number"),
        this.cell(w.span(limit), "number"), this.cell(delivery.order_id ?? "", "wide"));
      return row;
    }));
    if (focused) Array.from(body.querySelectorAll("button")).find((b) => b.textContent === focused)?.focus();
  }

  cell(content, name = "") {
    const cell = this.document.createElement("td");
    cell.className = name;
    cell.append(content);
    return cell;
  }

  // ---- search

  /** find shows one delivery, or the live ones of an order. */
  async find(id) {
    if (!id) return;
    try {
      let deliveries;
      try {
        deliveries = [await this.get("v1/deliveries/" + encodeURIComponent(id))];
      } catch (error) {
        if (error.status !== 404) throw error;
        deliveries = (await this.get("v1/deliveries?order_id=" + encodeURIComponent(id))).deliveries;
      }
      this.found = { deliveries };
    } catch (error) {
      this.found = { why: error.status ? error.message : this.words.text("noConnection") };
    }
    this.showFound();
  }

  showFound() {
    const w = this.words, place = this.at("found");
    if (!this.found) return place.replaceChildren();
    const say = (text) => { const p = this.document.createElement("p"); p.textContent = text; place.replaceChildren(p); };
    if (this.found.why) return say(w.text("searchFailed", { why: this.found.why }));
    if (this.found.deliveries.length === 0) {
      return say(w.text("nothingFound", { window: w.span(this.answer?.closed_window_seconds ?? 86_400) }));
    }
    place.replaceChildren(...this.found.deliveries.flatMap((d) => this.card(d)));
  }

  /** card is one delivery with its timeline. */
  card(delivery) {
    const w = this.words, d = this.document, now = new Date(this.now());
    const title = d.createElement("h3"), facts = d.createElement("p"), table = d.createElement("table");
    title.textContent = delivery.delivery_id;
    facts.className = "quiet";
    const details = [delivery.order_id, delivery.store_id, ...Object.values(delivery.dimensions ?? {})].filter(Boolean);
    facts.textContent = [this.label(delivery.status) + (delivery.raw_status ? " (" + delivery.raw_status + ")" : ""),
      delivery.closed ? w.text("closedAt", { time: w.time(new Date(delivery.closed_at), now) }) : w.text("since", { time: w.time(new Date(delivery.since), now) }),
      ...details].join(" · ");
    const head = table.createTHead().insertRow();
    for (const [text, name] of [["status", ""], ["first", ""], ["inStatus", "number"]]) {
      const th = d.createElement("th");
      th.scope = "col";
      th.className = name;
      th.textContent = w.text(text);
      head.append(th);
    }
    const body = table.createTBody();
    for (const leg of legs(delivery)) {
      const seconds = leg.seconds ?? (delivery.closed ? null : (this.now() - leg.at) / 1000);
      const row = d.createElement("tr");
      row.append(this.cell(this.label(leg.status)), this.cell(w.time(new Date(leg.at), now)), this.cell(seconds === null ? "" : w.age(seconds), "number"));
      body.append(row);
    }
    return [title, facts, table];
  }
}

/** put writes a text only if it is another one, so that nothing is drawn or read out
 * for nothing. */
function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
