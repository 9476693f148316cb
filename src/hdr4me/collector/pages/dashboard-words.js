// The texts of the dashboard: pure functions of the collector's answers.

export const count = (n) => Number(n).toLocaleString("en");

/** A number with four significant digits. */
export const number = (x) => {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  return size >= 1000
    ? count(Math.round(x))
    : size && size < 1e-4
      ? x.toExponential(2)
      : String(Number(x.toPrecision(4)));
};

/** A share as a percentage. */
export const share = (x, digits = 1) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(digits)}\u00a0%`);

export const reports = (n) => `${count(n)} ${n == 1 ? "report" : "reports"}`;

/** An hour since the epoch in UTC. */
export const hourText = (hour) => new Date(hour * 3_600_000).toISOString().slice(0, 13).replace("T", " ") + ":00 UTC";

/** The number of reports that are missing until answers are shown. */
export const missing = ({ stored, min_reports: least }) => {
  const left = Math.max(1, least - stored);
  return (
    `No answer is shown from fewer than ${reports(least)}. ${reports(stored)} ${stored == 1 ? "is" : "are"} stored: ` +
    `${count(left)} more ${left == 1 ? "is" : "are"} needed.`
  );
};

/** The width of the intervals beside the planned tolerance. */
export const progress = ({ plan: { tolerance, half_width: now, reports_needed: needed }, stored }) => {
  if (now === null) return "The width of the intervals is known when there are more answers for every dimension.";
  const size = (x) => `±${x.toPrecision(2)}`;
  const kept = `The estimates are within ${size(now)} with 95\u00a0% probability (numbers scaled to [−1, 1]).`;
  if (tolerance === null) return `${kept} No tolerance is planned; plan one, or use hdr4me serve --tolerance.`;
  if (now <= tolerance) return `${kept} The planned tolerance of ${size(tolerance)} is reached.`;
  return `${kept} The planned tolerance of ${size(tolerance)} needs about ${reports(needed)}: ${count(Math.max(0, needed - stored))} more.`;
};

const LIFE = {
  open: "The round accepts reports.",
  closed: "The round accepts no more reports. Raw reports are kept for some days, so that they can still be deleted by id.",
  finalized: "Only the tally is kept; the raw reports are deleted.",
};
export const life = (state) => LIFE[state] ?? "";

/** The meaning of no alarm. */
export const calm = ({ alarm_tests: tests, false_alarm_rate: rate, audits_before: before }) =>
  tests === undefined
    ? "Counts are tested when answers are shown."
    : `No alarm. ${count(tests)} tests ask whether the counts are plausible for a population of users (audit ${before + 1}). ` +
      `If no report is poisoned, the probability of any alarm at any audit is at most ${share(rate)}.`;
