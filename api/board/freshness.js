// When the page may call its numbers current. Pure.

/** tolerance is the age in seconds up to which numbers are current. The stream
 * proves their age at least every five seconds. */
export const tolerance = 7;

/** judge says how current the last answer is at a time. seen is null before the
 * first answer, else {at, asOf}; trouble is what is wrong with the connection, ""
 * if nothing is. */
export function judge(seen, now, trouble) {
  if (!seen) return { state: trouble ? "notCurrent" : "waiting", age: null, why: trouble };
  const { asOf } = seen;
  const proved = asOf.staleness_seconds !== null;
  const age = proved ? asOf.staleness_seconds + Math.max(0, now - seen.at) / 1000 : null;
  if (trouble) return { state: "notCurrent", age, why: trouble };
  if (!proved) return { state: "notCurrent", age, why: "unproved" };
  if (asOf.stale || age > tolerance) return { state: "notCurrent", age, why: "old" };
  return { state: "current", age, why: "" };
}
