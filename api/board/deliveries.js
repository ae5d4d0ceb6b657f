// Questions about single deliveries, and what the page makes of the answers.

/** stuckQuestions are the lists that together hold all stuck deliveries: one, if
 * every live status has the same limit, else one for each. */
export function stuckQuestions(statuses, filter, most) {
  const limited = statuses.filter((s) => !s.terminal && s.stuck_after_seconds > 0);
  const live = statuses.filter((s) => !s.terminal);
  const same = limited.length === live.length && new Set(limited.map((s) => s.stuck_after_seconds)).size === 1;
  const question = (seconds, status) => {
    const query = new URLSearchParams(filter);
    if (status) query.set("status", status);
    query.set("older_than", seconds + "s");
    query.set("limit", String(most));
    return "v1/deliveries?" + query;
  };
  if (limited.length === 0) return [];
  return same ? [question(limited[0].stuck_after_seconds, "")] : limited.map((s) => question(s.stuck_after_seconds, s.name));
}

/** worst merges the answers: those that are furthest beyond their limit first. */
export function worst(answers, statuses, now, most) {
  const limits = new Map(statuses.map((s) => [s.name, s.stuck_after_seconds]));
  const rows = answers.flatMap((a) => a.deliveries).map((d) => {
    const seconds = (now - Date.parse(d.since)) / 1000;
    return { delivery: d, seconds, limit: limits.get(d.status) };
  });
  rows.sort((a, b) => (b.seconds - b.limit) - (a.seconds - a.limit));
  return { rows: rows.slice(0, most), total: answers.reduce((n, a) => n + a.total, 0) };
}

/** legs are the statuses of a timeline in the order in which they began, with how
 * long each took in seconds; that of the last is null. */
export function legs(delivery) {
  const times = delivery.timeline.map((t) => ({ ...t, at: Date.parse(t.first) })).sort((a, b) => a.at - b.at);
  return times.map((t, i) => ({ ...t, seconds: i + 1 < times.length ? (times[i + 1].at - t.at) / 1000 : null }));
}
