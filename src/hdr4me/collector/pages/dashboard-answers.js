// Estimates: means, curves of ordered groups and frequencies, raw and re-calibrated, as figures and as one table.
import { plain } from "./answer-words.js";
import { curve, intervals } from "./dashboard-charts.js";
import { make, p, table } from "./dashboard-dom.js";
import { count, number, reports, share } from "./dashboard-words.js";

const TOP = 12;
const MOST_MEANS = 24;
const MOST_PICTURES = 24;
const MOST_ROWS = 600;
const MOST_NOTES = 5;

const SHARES = new Set(["frequency", "chosen", "share"]);

const push = (groups, name, row) => (groups.has(name) ? groups.get(name).push(row) : groups.set(name, [row]));

// The range on which a number without a category is drawn, if it is known.
function rangeOf(row, dimension) {
  if (row.statistic == "number chosen") return { low: 0, high: dimension?.at_most ?? 1 };
  return row.statistic == "mean" && dimension?.low !== undefined ? dimension : null;
}

/** The estimates of one or two documents by the kind of figure; other statistics are in the table only. */
export function grouped(survey, documents) {
  const known = new Map(survey.dimensions.map((dimension) => [dimension.name, dimension]));
  const [means, curves, frequencies] = [[], new Map(), new Map()];
  for (const [kind, { rows }] of Object.entries(documents))
    for (const row of rows) {
      if (row.estimate === null) continue;
      const dimension = known.get(row.dimension);
      const one = { ...row, kind, low: row.lower ?? row.estimate, high: row.upper ?? row.estimate };
      const range = rangeOf(row, dimension);
      if (SHARES.has(row.statistic)) push(frequencies, row.dimension, one);
      else if (row.category !== null)
        push(curves, row.dimension, { ...one, point: row.category }); // a vector
      else if (range && dimension.curve) push(curves, dimension.curve, { ...one, point: row.dimension });
      else if (range) means.push({ ...one, range });
    }
  return { means, curves, frequencies };
}

/** The categories with the largest estimates, in the order of the survey if there are at most `most`. */
export function top(rows, most = TOP) {
  const last = rows.filter(({ kind }) => kind == rows.at(-1).kind);
  if (last.length <= most) return new Set(last.map(({ category }) => category));
  const largest = [...last].sort((a, b) => b.estimate - a.estimate).slice(0, most);
  return new Set(largest.map(({ category }) => category));
}

const noteOf = ({ dimension, note }) => plain(`${dimension}: ${note}`);
const named = ({ category, statistic }) => (category === null ? plain(statistic) : category);
const value = ({ estimate, lower, upper }) =>
  lower === null ? number(estimate) : `${number(estimate)} ± ${number(Number(((upper - lower) / 2).toPrecision(2)))}`;

function meansPicture(means, width) {
  const scaled = means.map((row) => {
    const { low, high } = row.range;
    const place = (x) => (x - low) / (high - low);
    return {
      name: row.statistic == "mean" ? plain(row.dimension) : `${plain(row.dimension)}: ${row.statistic}`,
      kind: row.kind,
      x: place(row.estimate),
      low: place(row.low),
      high: place(row.high),
      text: value(row),
    };
  });
  const names = [...new Set(scaled.map(({ name }) => name))].slice(0, MOST_MEANS);
  const rows = scaled.filter(({ name }) => names.includes(name));
  const domain = [Math.min(0, ...rows.map(({ low }) => low)), Math.max(1, ...rows.map(({ high }) => high))];
  const tickFormat = (x) => (x == 0 ? "lowest" : x == 1 ? "highest" : "");
  return intervals("Means with 95 % intervals, each on its own range; a table follows", rows, {
    width,
    domain,
    ticks: [0, 0.5, 1],
    tickFormat,
    axis: null,
  });
}

// How many characters all names begin with, digits at the end not counted: "steps_" of steps_00, steps_01.
function prefix([first, ...others]) {
  let length = others.length ? first.length : 0;
  while (!others.every((name) => name.startsWith(first.slice(0, length)))) length--;
  return first.slice(0, length).replace(/\d+$/, "").length;
}

function curvePicture(name, rows, width) {
  const names = [...new Set(rows.map(({ point }) => point))];
  const common = prefix(names);
  const points = rows.map((row) => ({
    place: names.indexOf(row.point),
    name: plain(row.point.slice(common)),
    kind: row.kind,
    y: row.estimate,
    low: row.low,
    high: row.high,
    text: `${plain(row.point)}: ${value(row)}`,
  }));
  const label = `${name}: a mean with its 95 % interval at each of ${names.length} points; a table follows`;
  return curve(label, points, { width, axis: null });
}

function sharesPicture(dimension, rows, width) {
  const kept = top(rows);
  const order = [...kept];
  const shown = rows
    .filter(({ category }) => kept.has(category))
    .map((row) => ({
      name: named(row),
      kind: row.kind,
      x: row.estimate,
      low: row.low,
      high: row.high,
      text: share(row.estimate),
      place: order.indexOf(row.category),
    }))
    .sort((a, b) => a.place - b.place);
  const domain = [Math.min(0, ...shown.map(({ low }) => low)), Math.max(0.1, ...shown.map(({ high }) => high))];
  return intervals(`${plain(dimension)}: shares with 95 % intervals; a table follows`, shown, {
    width,
    domain,
    ticks: width < 420 ? 3 : 5,
    tickFormat: (x) => `${Math.round(100 * x)} %`,
    axis: null,
  });
}

const figure = (title, note, drawn) =>
  make(
    "figure",
    {},
    make("figcaption", {}, make("strong", {}, title), note ? make("span", { className: "hint" }, ` ${note}`) : ""),
    drawn,
  );

/** All figures of the estimates, for an element of this width. */
export function pictures(survey, documents, width) {
  const { means, curves, frequencies } = grouped(survey, documents);
  const half = width >= 720 ? Math.floor((width - 24) / 2) : width;
  const many = new Set(means.map(({ dimension, statistic }) => `${dimension} ${statistic}`)).size;
  const wide = [...curves].map(([name, rows]) =>
    figure(plain(name), "mean at each point", curvePicture(name, rows, half)),
  );
  if (means.length)
    wide.push(
      figure(
        "Means",
        many > MOST_MEANS ? `the first ${MOST_MEANS} of ${count(many)}` : "each on its own range",
        meansPicture(means, half),
      ),
    );
  const small = [...frequencies].slice(0, MOST_PICTURES).map(([dimension, rows]) => {
    const all = new Set(rows.map(({ category }) => category)).size;
    return figure(
      plain(dimension),
      all > TOP ? `the ${TOP} largest of ${count(all)}` : "",
      sharesPicture(dimension, rows, half),
    );
  });
  const rest = frequencies.size - small.length;
  const note = p(`The shares of ${count(rest)} more dimensions are in the table and in the CSV file only.`, "hint");
  return [...wide, ...small, ...(rest ? [note] : [])];
}

/** A sentence under the heading, the notes, and the legend if there are two kinds. */
export function heading(documents, { without, together }) {
  const { reports: n, confidence, rounds, too_few_reports: missing } = documents.raw;
  const from = together
    ? `Rounds ${rounds.join(", ")} combined: `
    : without
      ? "Quarantined reports excluded: "
      : "";
  const left = missing?.length ? ` Excluded because of too few reports: round ${missing.join(", ")}.` : "";
  const lines = [
    p(
      `${from}${reports(n)}, with ${share(confidence, 0)} confidence intervals. Estimates are updated for several new reports at once, so that no single report is visible.${left}`,
    ),
  ];
  const better = documents["re-calibrated"];
  if (!better) lines.push(...documents.raw.advice.map((text) => p(text, "hint")));
  const noted = new Set(documents.raw.rows.filter(({ note }) => note).map(noteOf));
  lines.push(...[...noted].slice(0, MOST_NOTES).map((text) => p(text, "hint")));
  if (noted.size > MOST_NOTES) lines.push(p(`${count(noted.size - MOST_NOTES)} more notes: see the table.`, "hint"));
  if (better) {
    const key = ["raw", "re-calibrated"].map((kind) => make("span", { className: `key ${kind}` }, kind));
    lines.push(make("p", { className: "keys" }, ...key));
    const [first, ...others] = better.advice.map((text) => p(text, "hint"));
    if (first) lines.push(first);
    if (others.length)
      lines.push(
        make("details", { id: "advice" }, make("summary", {}, "How the frequencies were re-calibrated"), ...others),
      );
  }
  return lines;
}

/** All estimates as a table. */
export function numbers(documents) {
  const [raw, better] = [documents.raw.rows, documents["re-calibrated"]?.rows];
  const columns = ["dimension", "statistic", "estimate", "lower", "upper", "answers", "status"];
  if (better) columns.splice(5, 0, "re-calibrated", "lower", "upper");
  const noted = raw.some(({ note }) => note);
  if (noted) columns.push("note");
  const lines = raw.slice(0, MOST_ROWS).map((row, k) => {
    const values = [row.estimate, row.lower, row.upper];
    if (better) values.push(better[k]?.estimate, better[k]?.lower, better[k]?.upper);
    return [plain(row.dimension), named(row), ...values.map(number), count(row.answers), row.status, ...(noted ? [plain(row.note ?? "")] : [])];
  });
  const rest = raw.length - lines.length;
  const caption =
    rest > 0
      ? `The first ${count(MOST_ROWS)} of ${count(raw.length)} rows; the CSV file has all`
      : "All estimates with their intervals";
  return table("numbers", caption, columns, lines);
}
