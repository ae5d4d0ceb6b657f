// What the page remembers of a number: a bounded history, and its sparkline. Pure.

/** step is how far apart samples are, span how far back they go, in milliseconds. */
export const step = 5_000;
export const span = 15 * 60_000;

/** Series holds the last value of each step, for at most the span. */
export class Series {
  constructor() { this.samples = []; }

  /** add takes in a value at a time. A clock that goes back begins anew. */
  add(at, value) {
    const slot = Math.floor(at / step);
    const last = this.samples.at(-1);
    if (last && slot < last.slot) this.samples = [];
    if (last && slot === last.slot) last.value = value;
    else this.samples.push({ slot, value });
    while (this.samples[0].slot <= slot - span / step) this.samples.shift();
  }

  /** newest names the step of the last sample, -1 without any. */
  get newest() { return this.samples.at(-1)?.slot ?? -1; }

  /** change returns by how much the value moved since age before at; null while the
   * history is younger than that: less than it would pass for a quiet time. */
  change(at, age) {
    const from = Math.floor((at - age) / step);
    const base = this.samples.findLast((s) => s.slot <= from);
    return base ? this.samples.at(-1).value - base.value : null;
  }

  /** points is the sparkline in a box of 100 by 24, for a polyline; time runs from
   * the first sample to the last. */
  points() {
    const values = this.samples.map((s) => s.value);
    if (values.length < 2) return "";
    const least = Math.min(...values), most = Math.max(...values);
    const from = this.samples[0].slot, width = this.samples.at(-1).slot - from;
    return this.samples.map(({ slot, value }) => {
      const x = 100 * (slot - from) / width;
      const y = most === least ? 12 : 22 - 20 * (value - least) / (most - least);
      return x.toFixed(1) + "," + y.toFixed(1);
    }).join(" ");
  }
}

/** consumed is how many records a position has behind it, over all partitions. */
export function consumed(position) {
  let sum = 0;
  for (const part of position.split(",")) sum += Number(part.split(":")[1]) || 0;
  return sum;
}
