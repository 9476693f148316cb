// What the page says, as text: pure functions of a survey's document and a report.

/** How sure somebody can be at most after the report who guessed 50 : 50 before. */
export const surest = (epsilon) => 1 / (1 + Math.exp(-epsilon));

/** A share in words, never rounded to certainty. */
export const percent = (share) => {
  const digits = share > 0.999 ? 3 : share > 0.99 ? 2 : share > 0.9 ? 1 : 0;
  const text = (100 * share).toFixed(digits);
  return Number(text) >= 100 ? "more than 99.999 %" : `${text} %`;
};

/** A name as people write it: "sleep_hours" becomes "sleep hours". */
export const plain = (name) => name.replaceAll("_", " ");

const list = (texts) => (texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`);

/** The questions of a document of either version: {dimensions, channel}. */
export const questionsOf = ({ version, dimensions, randomizers, questions, channels }) =>
  version === 1
    ? dimensions.map((dimension) => ({ dimensions: [dimension], channel: randomizers[dimension.randomizer] }))
    : questions.map((question) => ({
        dimensions: question.dimensions.map((j) => dimensions[j]),
        channel: channels[question.channel],
      }));

/** What the fields of an answer say. */
export const meaning = ({ dimensions, channel }, fields) => {
  const [{ categories = [] }] = dimensions;
  const named = (k) => (k < categories.length ? `“${categories[k]}”` : "no choice");
  const { kind, family, weights } = channel;
  if (kind == "entries") {
    const yes = fields.flatMap((bit, k) => (bit ? [named(k)] : []));
    return `a mark for each of ${fields.length} categories; marked: ${list(yes) || "none"}`;
  }
  if (kind == "category" || (family?.name == "subset" && family.chosen == 1)) return `the category ${named(fields[0])}`;
  if (family?.name == "projective") return `number ${fields[0]}, which stands for many categories at once`;
  if (family) return `the set of ${list([...new Set(fields.map(named))])}`;
  return `the number ${fields[0]}, one of 0 to ${weights[0].length - 1}`;
};

/** What the report can tell: the odds in plain words. */
export const odds = (epsilon) =>
  "Take any two sets of answers that you might give. Somebody who thinks both equally likely before can be at most " +
  `${percent(surest(epsilon))} sure of one of them after reading the report ` +
  `(ε\u00a0=\u00a0${epsilon}: odds change by a factor of at most ${Math.exp(epsilon).toPrecision(3)}).`;

/** How far the ledger lets this browser go. */
export const budget = ({ left, waiting, out }, epsilon) => {
  const waits = waiting ? ` ${waiting} ${waiting == 1 ? "report waits" : "reports wait"} for the network.` : "";
  if (out) return `You do not take part. Nothing is sent.${waits}`;
  const reports = Math.max(0, Math.floor(left));
  if (!reports)
    return `Spent: this browser has sent to this survey what it may. Another report would tell more about you.${waits}`;
  return `This browser may send ${reports} more ${reports == 1 ? "report" : "reports"} to this survey, at ε\u00a0=\u00a0${epsilon} each.${waits}`;
};
