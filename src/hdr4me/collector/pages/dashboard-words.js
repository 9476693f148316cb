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

/** The number of reports that are missing until estimates are shown. */
export const missing = ({ stored, min_reports: least }) => {
  const left = Math.max(1, least - stored);
  return (
    `Estimates need at least ${reports(least)}. ${reports(stored)} ${stored == 1 ? "is" : "are"} stored: ` +
    `${count(left)} more ${left == 1 ? "is" : "are"} needed.`
  );
};

/** The width of the intervals beside the planned tolerance. */
export const progress = ({ plan: { tolerance, half_width: now, reports_needed: needed }, stored }) => {
  if (now === null) return "The margin of error is shown when there are more answers for every dimension.";
  const size = (x) => `±${x.toPrecision(2)}`;
  const kept = `The margin of error is ${size(now)} with 95\u00a0% probability (numbers scaled to [−1, 1], shares to [0, 1]).`;
  if (tolerance === null) return `${kept} The survey declares no tolerance; hdr4me serve --tolerance sets one.`;
  if (now <= tolerance) return `${kept} The planned tolerance of ${size(tolerance)} is reached.`;
  return `${kept} The planned tolerance of ${size(tolerance)} needs about ${reports(needed)}: ${count(Math.max(0, needed - stored))} more.`;
};

const LIFE = {
  open: "The round accepts reports.",
  closed: "The round accepts no more reports. Individual reports are kept for a grace period, in which they can be deleted by id.",
  finalized: "The individual reports are deleted; only the tally is kept.",
};
export const life = (state) => LIFE[state] ?? "";

/** The sentence that is shown if there is no alarm. */
export const calm = ({ alarm_tests: tests, false_alarm_rate: rate, audits_before: before }) =>
  tests === undefined
    ? "Counts are tested for poisoned reports when estimates are shown."
    : `No alarm in ${count(tests)} tests (audit ${before + 1}): users who follow the protocol can produce these counts. ` +
      `If no report is poisoned, the probability of any alarm over all audits is at most ${share(rate)}.`;
