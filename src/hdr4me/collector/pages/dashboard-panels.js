// The panels around the answers: state, progress, alarms, arrivals, quarantine, manipulation bounds, the survey.
import { odds, plain } from "./answer-words.js";
import { arrivals } from "./dashboard-charts.js";
import { at, fill, make, p, table, words } from "./dashboard-dom.js";
import { calm, count, hourText, life, missing, number, progress, reports, share } from "./dashboard-words.js";

const pairs = (rows) =>
  make("dl", {}, ...Object.entries(rows).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));

const hidden = (status) => status.shown_at === null;

export function showState(status) {
  const { state, stored, opened, closed, shown_at: shown, damaged_blocks: damaged } = status;
  fill(at("state-body"), [state, stored, shown, damaged, closed], () => [
    make("p", { className: "big" }, make("span", { className: `badge ${state}` }, state), ` ${reports(stored)}`),
    p(life(state)),
    pairs({
      opened: opened,
      ...(closed ? { closed } : {}),
      "reports in the estimates": shown === null ? "no reports yet" : reports(shown),
    }),
    damaged
      ? p(`${count(damaged)} stored blocks are damaged and excluded from the estimates: see the log, and restore a backup.`, "problem")
      : null,
  ]);
}

export function showProgress(status) {
  const { plan, stored, min_reports: least } = status;
  fill(at("progress-body"), [plan, stored, least], () => {
    const [value, goal, label] = hidden(status)
      ? [stored, least, "reports needed for estimates"]
      : [Math.min(stored, plan.reports_needed ?? 0), plan.reports_needed ?? 0, "reports needed for the planned tolerance"];
    const bar = make("meter", {
      min: 0,
      max: goal || 1,
      value: plan.half_width !== null && plan.half_width <= plan.tolerance ? goal : value,
    });
    bar.setAttribute("aria-label", `${label}: ${count(value)} of ${count(goal)}`);
    return [
      p(hidden(status) ? missing(status) : progress(status)),
      goal ? bar : null,
      goal ? p(`${count(stored)} of ${count(goal)} ${label}`, "hint") : null,
    ];
  });
}

export function showAlarms(status) {
  const { alarms, alarm_tests: tests, false_alarm_rate: rate, audits_before: before } = status;
  at("alarms").classList.toggle("alarmed", alarms.length > 0);
  fill(at("alarms-body"), [alarms, tests, before], () => {
    if (!alarms.length) return [p(calm(status))];
    const lines = alarms.map(({ name, sentence, p_value: chance }) =>
      make(
        "li",
        {},
        make("strong", {}, `${name}: `),
        `${sentence} `,
        make("span", { className: "hint" }, `(p = ${number(chance)})`),
      ),
    );
    const what = alarms.length == 1 ? "One alarm" : `${alarms.length} alarms`;
    return [
      p(
        `${what}: users who follow the protocol are unlikely to produce these counts, whatever their values are. If no report is poisoned, the probability of any alarm over all audits is at most ${share(rate)}. Poisoned reports that imitate real ones raise no alarm.`,
      ),
      make("ul", {}, ...lines),
    ];
  });
}

const covered = (quarantines, hour) => quarantines.some((one) => one.hour === hour && one.source === null);

export function showArrivals(status, width) {
  const { by_hour: byHour, quarantines } = status;
  fill(at("arrivals-body"), [byHour, quarantines, width], () => {
    if (!byHour.length) return [p("No reports have arrived.")];
    const left = new Set(byHour.map(([hour]) => hour).filter((hour) => covered(quarantines, hour)));
    return [
      p(`Arrival times are stored to the hour, in UTC.${left.size ? " Gray: quarantined hours." : ""}`, "hint"),
      arrivals(byHour, left, width),
    ];
  });
  fill(at("arrivals-table"), byHour, () => {
    const rows = byHour.slice(-336).map(([hour, n]) => [hourText(hour), count(n)]);
    return [
      table(
        "hours",
        byHour.length > 336 ? "The last 336 hours with reports" : "Reports by hour",
        ["hour", "reports"],
        rows,
      ),
    ];
  });
}

const sourceText = (source) => (source ? `token ${source}` : "no token");
const quarantineText = ({ hour, source }) =>
  [hour === null ? null : hourText(hour), source === null ? null : sourceText(source)].filter(Boolean).join(", ");

/** Rejected uploads and quarantined reports; `put(what, on)` is null if the token may not change them. */
export function showQuarantine(status, put) {
  const { rejected, quarantines, by_hour: byHour, by_source: bySource, state } = status;
  const mayChange = put && state != "finalized";
  fill(at("quarantine-body"), [rejected, quarantines, bySource, !!mayChange], () => {
    const reasons = new Map();
    for (const { reason, count: n } of rejected) reasons.set(reason, (reasons.get(reason) ?? 0) + n);
    const lines = [...reasons].sort((a, b) => b[1] - a[1]).map(([reason, n]) => [reason, count(n)]);
    const items = quarantines.map((one) => {
      const back = make("button", { type: "button", id: `back-${one.hour}-${one.source}` }, "Include again");
      back.setAttribute("aria-label", `Include again: ${quarantineText(one)}`);
      back.addEventListener("click", () => put(one, false));
      return make("li", {}, quarantineText(one), " ", mayChange ? back : "");
    });
    const sources = bySource.some(([source]) => source)
      ? bySource.map(([source, n]) => [sourceText(source), count(n)])
      : [];
    return [
      lines.length
        ? table("reasons", "Rejected uploads by reason", ["reason", "uploads"], lines)
        : p("No upload was rejected."),
      sources.length ? table("sources", "Reports by upload token", ["token", "reports"], sources) : null,
      items.length ? p("Quarantined:") : p("No reports are quarantined."),
      items.length ? make("ul", {}, ...items) : null,
    ];
  });
  at("leave-out").hidden = !mayChange || !byHour.length;
  const choices = [
    ...byHour
      .slice(-336)
      .reverse()
      .map(([hour, n]) => [`hour ${hour}`, `${hourText(hour)} (${reports(n)})`]),
    ...bySource.map(([source, n]) => [`source ${source}`, `${sourceText(source)} (${reports(n)})`]),
  ];
  options(at("leave-out-what"), choices);
}

/** Fill a select, keeping the choice; nothing changes if the choices are the same. */
export function options(select, choices) {
  const chosen = select.value;
  fill(select, choices, () => choices.map(([value, text]) => make("option", { value }, text)));
  if (choices.some(([value]) => value == chosen)) select.value = chosen;
}

/** The largest shift in each curve, and in each dimension that is not a point of a curve. */
export function worst(bounds, survey) {
  const known = new Map(survey.dimensions.map((dimension) => [dimension.name, dimension]));
  const found = new Map();
  for (const one of bounds) {
    const { curve, categories } = known.get(one.dimension) ?? {};
    const name = curve ? `${plain(curve)} (each point)` : plain(one.dimension);
    const size = ({ shift }) => shift ?? Infinity;
    if (!found.has(name) || size(found.get(name)) < size(one)) found.set(name, { ...one, shares: !!categories });
  }
  return [...found];
}

export function showBounds({ manipulation_bounds: bounds }, survey) {
  fill(at("bounds-body"), [bounds, survey.fingerprint], () => {
    if (!bounds.length) return [p("No bound is known for this survey's channels.")];
    const text = (x, shares) =>
      x === null ? "unbounded" : shares ? `${(100 * x).toFixed(1)} percentage points` : number(x);
    const rows = worst(bounds, survey).map(([name, one]) => [
      one.present === undefined ? name : `${name} (${share(one.present)} with a value)`,
      text(one.shift, one.shares),
      text(one.shift_aimed, one.shares),
    ]);
    return [
      p(
        `The largest change of each estimate if ${share(bounds[0].share, 0)} of all reports are poisoned. Poisoning does not affect the privacy of other users.`,
      ),
      table("bounds-table", "Largest change", ["dimension", "poisoned reports answer random questions", "all answer this question"], rows),
    ];
  });
}

/** A summary of the survey; `proof` is the result of this browser's own check. */
export function showSurvey(survey, { round, proof }) {
  fill(at("survey-body"), [survey.fingerprint, round, proof], () => {
    const asked = (survey.questions ?? survey.dimensions).length;
    const link = (href, text) => make("a", { href, target: "_blank", rel: "noopener" }, text);
    return [
      p(odds(survey.epsilon)),
      pairs({
        "questions per report": `${survey.n_sampled} of ${asked}`,
        "privacy budget of a report": `ε = ${survey.epsilon}`,
        "privacy proof": proof,
        fingerprint: survey.fingerprint,
      }),
      make(
        "p",
        {},
        link(`/v1/surveys/${survey.fingerprint}`, "survey document"),
        " · ",
        link(`/answer?round=${round}`, "answer page"),
      ),
    ];
  });
}

export function showExplanation({ lead, blocks }) {
  fill(at("explanation-body"), blocks, () => [
    p(lead, "hint"),
    ...blocks.map((block, k) => {
      if (block.heading) return make("h3", {}, block.heading);
      if (block.columns) return table(`explained-${k}`, "", block.columns, block.rows);
      return make("p", {}, ...words(block.text));
    }),
  ]);
}

/** The rounds of a series, in place of the status of one round. */
export function showRounds(rounds) {
  fill(at("state-body"), rounds, () => [
    table(
      "rounds",
      "Rounds of this series",
      ["round", "state", "reports", "opened", "closed"],
      rounds.map(({ round, state, stored, opened, closed }) => [
        String(round),
        state,
        count(stored),
        opened,
        closed ?? "–",
      ]),
    ),
  ]);
}
