// The texts of the page: pure functions of a survey's document and a report.

/** The largest posterior probability of one of two records after the report, if the prior was 50 : 50. */
export const maximumPosterior = (epsilon) => 1 / (1 + Math.exp(-epsilon));

/** A probability as a percentage that is never rounded to 100 %. */
export const percent = (share) => {
  const digits = share > 0.999 ? 3 : share > 0.99 ? 2 : share > 0.9 ? 1 : 0;
  const text = (100 * share).toFixed(digits);
  return Number(text) >= 100 ? "more than 99.999 %" : `${text} %`;
};

/** A name without underscores: "sleep_hours" becomes "sleep hours". */
export const plain = (name) => name.replaceAll("_", " ");

const list = (texts) => (texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`);

/** The questions of a survey document: {dimensions, channel}. */
export const questionsOf = ({ dimensions, questions, channels }) =>
  questions.map((question) => ({
    dimensions: question.dimensions.map((j) => dimensions[j]),
    channel: channels[question.channel],
  }));

const sizeOf = ({ categories, edges, buckets, prefix }) =>
  prefix ? sizeOf(prefix[0]) : (buckets ?? edges?.length - 1) || categories.length;

/** The name of category k of a dimension; the last part of a joint dimension varies fastest. */
export const category = (dimension, k) => {
  const { joint, prefix, edges, buckets, categories = [] } = dimension;
  if (joint)
    return joint
      .toReversed()
      .map((part) => {
        const own = k % sizeOf(part);
        k = (k - own) / sizeOf(part);
        return category(part, own);
      })
      .reverse()
      .join(" × ");
  if (prefix) return category(prefix[0], k);
  return edges ? `${edges[k]} to ${edges[k + 1]}` : buckets ? `bucket ${k}` : categories[k];
};

/** The meaning of an answer's fields in words. */
export const meaning = ({ dimensions: [dimension], channel }, fields) => {
  const named = (k) => (category(dimension, k) === undefined ? "no choice" : `“${category(dimension, k)}”`);
  const { kind, family, weights } = channel;
  if (kind == "entries") {
    const yes = fields.flatMap((bit, k) => (bit ? [named(k)] : []));
    return `one bit for each of ${fields.length} categories; set: ${list(yes) || "none"}`;
  }
  if (kind == "category" || (family?.name == "subset" && family.chosen == 1)) return `the category ${named(fields[0])}`;
  if (family?.name == "projective") return `number ${fields[0]}, which represents many categories at once`;
  if (family?.name == "codebook") return `vector ${fields[1]} of random list ${fields[0]}`;
  if (family) return `the set of ${list([...new Set(fields.map(named))])}`;
  return `the number ${fields[0]}, one of 0 to ${weights[0].length - 1}`;
};

/** The bound on what a report reveals, in plain words. */
export const odds = (epsilon) =>
  "Consider any two sets of answers that you might give. An observer who considers both equally likely before your report " +
  `can consider either of them at most ${percent(maximumPosterior(epsilon))} likely after it ` +
  `(ε\u00a0=\u00a0${epsilon}: the odds change by a factor of at most ${Math.exp(epsilon).toPrecision(3)}).`;

/** The remaining privacy budget of this browser. */
export const budget = ({ left, waiting, out }, epsilon) => {
  const waits = waiting ? ` ${waiting} ${waiting == 1 ? "report waits" : "reports wait"} for a connection.` : "";
  if (out) return `You have opted out. Nothing is sent.${waits}`;
  const reports = Math.max(0, Math.floor(left));
  if (!reports)
    return `The privacy budget is spent: another report would reveal more about you than the limit allows.${waits}`;
  return `This browser may send ${reports} more ${reports == 1 ? "report" : "reports"} to this survey, at ε\u00a0=\u00a0${epsilon} each.${waits}`;
};
