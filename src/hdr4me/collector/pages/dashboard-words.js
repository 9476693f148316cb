// What the dashboard says, as text: pure functions of what the collector answers.

export const count = (n) => Number(n).toLocaleString("en");

/** A number with four digits that count. */
export const number = (x) => {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  return size >= 1000
    ? count(Math.round(x))
    : size && size < 1e-4
      ? x.toExponential(2)
      : String(Number(x.toPrecision(4)));
};

/** A share as per cent. */
export const share = (x, digits = 1) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(digits)}\u00a0%`);

export const reports = (n) => `${count(n)} ${n == 1 ? "report" : "reports"}`;

/** An hour since the epoch in UTC. */
export const hourText = (hour) => new Date(hour * 3_600_000).toISOString().slice(0, 13).replace("T", " ") + ":00 UTC";

/** What is missing until answers are shown. */
export const missing = ({ stored, min_reports: least }) => {
  const left = Math.max(1, least - stored);
  return (
    `No answer is shown from fewer than ${reports(least)}. ${reports(stored)} ${stored == 1 ? "is" : "are"} stored: ` +
    `${count(left)} more ${left == 1 ? "is" : "are"} needed.`
  );
};

/** How wide intervals are beside what was planned. */
export const progress = ({ plan: { tolerance, half_width: now, reports_needed: needed }, stored }) => {
  if (now === null) return "Unknown until answers are shown.";
  const widest = `The widest 95\u00a0% interval is ±${share(now)} of its range.`;
  if (tolerance === null) return `${widest} No tolerance was planned; the option --tolerance of hdr4me serve sets one.`;
  if (now <= tolerance) return `${widest} Planned were ±${share(tolerance)}: reached.`;
  return `${widest} Planned are ±${share(tolerance)}: about ${reports(needed)} in all, ${count(Math.max(0, needed - stored))} more.`;
};

const LIFE = {
  open: "Reports are taken.",
  closed: "No more reports are taken. Raw reports are kept for some days, so that they can still be deleted by id.",
  sealed: "Only the tally is kept.",
};
export const life = (state) => LIFE[state] ?? "";

/** What no alarm means. */
export const calm = ({ alarm_tests: tests, alarm_level: level, look }) =>
  tests === undefined
    ? "Counts are looked at when answers are shown."
    : `No alarm. ${count(tests)} tests ask whether an honest population can give these counts (look ${look}). ` +
      `If all reports are honest, any alarm at any look has a probability of at most ${share(level)}.`;
