// hdr4me in the browser: a survey is proven, a record is randomised, the report is paid for, kept and sent.
//
// This is the readable source. `hdr4me.js` beside it is this file without comments and indentation: `node build.js`.
// It gives the same bytes as the Python client for the same random words (docs/browser.md has the words' order).

const ONE = 2 ** 32; // every row of every table sums to this
const FRACTION = 2 ** 16; // a number between two levels is rounded by sixteen bits

const stop = (name, message) => {
  throw Object.assign(new Error(message), { name });
};
const check = (found, what) => found || stop("FormatError", "not a valid survey: " + what);

// ---- Exact numbers ------------------------------------------------------------------------------------------------

// The object has all of `needed` and perhaps some of `more`, names with commas between them, and nothing else.
const fields = (object, needed, more = needed) => {
  const names = Object.keys(check(object, "something is missing"));
  const [all, some] = [needed.split(","), (needed + "," + more).split(",")];
  check(all.every((name) => names.includes(name)) && names.every((name) => some.includes(name)), `not ${needed}: ${names}`);
};

const whole = (x, low, high) => Number.isInteger(x) && low <= x && x <= high;
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const bitLength = (n) => n.toString(2).length;

// A double as a fraction [numerator, denominator].
const exact = (x) => {
  let denominator = 1n;
  while (!Number.isInteger(x)) [x, denominator] = [x * 2, denominator * 2n];
  return [BigInt(x), denominator];
};

const comb = (n, k) => {
  let found = 1n;
  for (let i = 1; i <= k; i++) found = (found * BigInt(n - k + i)) / BigInt(i);
  return k < 0 ? 0n : found;
};

// Whether n/d is at most e^ε, by a rational number that is provably not larger than e^ε: ε is halved until it is at
// most 1/2, the Taylor sum is cut and floored, and the result is squared back with its 160 leading bits.
const within = (n, d, epsilon) => {
  let [a, b] = exact(epsilon);
  let halvings = 0;
  for (; 2n * a > b; halvings++) b *= 2n;
  let term = 1n << 160n;
  let total = term;
  for (let k = 1n; k < 40n; k++) total += term = (term * a) / (b * k);
  let exponent = -160n;
  for (; halvings; halvings--) {
    total *= total;
    const surplus = BigInt(Math.max(0, bitLength(total) - 160));
    total >>= surplus;
    exponent = exponent * 2n + surplus;
  }
  return exponent < 0n ? n << -exponent <= total * d : n <= (total << exponent) * d;
};

// ---- Random words: a source is a function that gives the next n bytes, at once or as a promise --------------------

const random = (n) => crypto.getRandomValues(new Uint8Array(n));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const word = async (draw, bits) => (await draw(bits / 8)).reduce((n, byte) => n * 256n + BigInt(byte), 0n);

// A uniform number below n: the first word under the largest multiple of n, modulo n.
const bigBelow = async (draw, n) => {
  const bits = n <= ONE ? 32 : Math.ceil(bitLength(n - 1n) / 64) * 64;
  const limit = 1n << BigInt(bits);
  for (;;) {
    const found = await word(draw, bits);
    if (found < limit - (limit % n)) return found % n;
  }
};
export const below = async (draw, n) => Number(await bigBelow(draw, BigInt(n)));

// `size` different numbers below n in increasing order (Floyd's algorithm: one draw for each).
const several = async (draw, n, size) => {
  const found = new Set();
  for (let j = n - size; j < n; j++) {
    const t = await below(draw, j + 1);
    found.add(found.has(t) ? j : t);
  }
  return [...found].sort((a, b) => a - b);
};

const shuffled = async (draw, items, n) => {
  const left = [...items];
  for (let i = 0; i < n; i++) {
    const j = i + (await below(draw, left.length - i));
    [left[i], left[j]] = [left[j], left[i]];
  }
  return left.slice(0, n);
};

// The device's secret as a source of fixed bytes: HMAC-SHA256 over a label, block by block.
export const stream = (key, series, use, a = 0, b = 0) => {
  const label = new Uint8Array(63);
  const view = new DataView(label.buffer);
  label.set(new TextEncoder().encode("hdr4me-permanent-1"));
  for (let i = 0; i < 32; i++) label[18 + i] = parseInt(series.substr(2 * i, 2), 16);
  label[50] = use;
  view.setUint32(51, a);
  view.setUint32(55, b);
  let block = 0;
  const left = [];
  return async (n) => {
    while (left.length < n) {
      view.setUint32(59, block++);
      left.push(...new Uint8Array(await crypto.subtle.sign("HMAC", key, label)));
    }
    return left.splice(0, n);
  };
};

// ---- Channels: {takes: [[reads, size], …], draw(x, source)}, made only if the proof holds --------------------------

// Every bound is compared, whatever the word: how many running sums are at or below it.
const pick = async (row, draw) => {
  const drawn = Number(await word(draw, 32));
  let [total, cell] = [0, -1];
  for (const weight of row) {
    cell += drawn >= total;
    total += weight;
  }
  return cell;
};

const ratio = (high, low) => [BigInt(high), BigInt(low)];
const larger = ([a, b], [c, d]) => (a * d < c * b ? [c, d] : [a, b]);

const proven = (channel, n, d) =>
  check(
    typeof channel.mechanism == "string" &&
      channel.mechanism &&
      channel.epsilon > 0 &&
      channel.epsilon <= 65536 &&
      within(n, d, channel.epsilon),
    `channel ${channel.mechanism} leaks more than its epsilon = ${channel.epsilon}`,
  );

// Whole weights whose rows sum to 2^32, and in every column the largest and the smallest.
const checkRows = (rows, most) => {
  check(Array.isArray(rows) && whole(rows.length, 2, most), "the rows of a table");
  const n = rows[0].length;
  for (const row of rows)
    check(
      whole(n, 2, 256) && row.length == n && row.every((w) => whole(w, 0, ONE)) && sum(row) == ONE,
      "every row must have as many weights that sum to 2^32",
    );
  return rows[0].map((_, y) => {
    let [low, high] = [ONE, 0];
    for (const row of rows) [low, high] = [Math.min(low, row[y]), Math.max(high, row[y])];
    check(low || !high, `column ${y} has a weight of 0`);
    return ratio(high || 1, low || 1);
  });
};

// A decoder's mean is its target in every row, to 1e-7 of the mean size of what the row decodes to.
const checkDecoder = (rows, values, target) => {
  check(
    Array.isArray(values) &&
      values.length == rows[0].length &&
      values.every((v, y) => v === +v && Math.abs(v) < 1e300 && (!v || rows[0][y])),
    "a decoder's values",
  );
  rows.forEach((row, x) => {
    const parts = row.map((w, y) => (w / ONE) * values[y]);
    const error = Math.abs(sum(parts) - target(x));
    check(error <= 1e-7 * (1 + sum(parts.map(Math.abs))), "a decoder is not unbiased");
  });
};

const table = (channel) => {
  const { takes, decoders, weights } = channel;
  const columns = checkRows(weights, 65536);
  proven(channel, ...columns.reduce(larger));
  let block = 1;
  const targets = {};
  for (let i = takes.length; i--; ) {
    const { reads, size } = takes[i];
    const [step, levels] = [block, size - (reads == "optional")];
    fields(takes[i], "reads,size");
    check(/^(number|optional)$/.test(reads) && whole(levels, 2, 65536), "what a table takes");
    const level = (x) => Math.floor(x / step) % size;
    const suffix = i ? ` ${i + 1}` : "";
    targets["value" + suffix] = (x) => (level(x) < levels ? (2 * level(x)) / (levels - 1) - 1 : 0);
    if (reads == "optional") targets["present" + suffix] = (x) => +(level(x) < levels);
    block *= size;
  }
  check(block == weights.length, "a table needs one row for each input");
  fields(decoders, Object.keys(targets).join());
  for (const name in targets) checkDecoder(weights, decoders[name], targets[name]);
  return { takes: takes.map(({ reads, size }) => [reads, size]), draw: async (x, draw) => [await pick(weights[x], draw)] };
};

const entries = (channel) => {
  const { size, weights, decode } = channel;
  checkRows(weights, 2);
  const pairs = weights[0].map((w, y) => [w || 1, weights[1][y] || 1]);
  const [a, b] = pairs.map(([w, v]) => ratio(v, w)).reduce(larger);
  const [c, d] = pairs.map(([w, v]) => ratio(w, v)).reduce(larger);
  proven(channel, a * c, b * d);
  check(whole(size, 2, 65536), "how many entries there are");
  checkDecoder(weights, decode, (x) => x);
  return {
    takes: [["category", size]],
    draw: async (x, draw) => {
      const found = [];
      for (let k = 0; k < size; k++) found.push(await pick(weights[+(k == x)], draw));
      return found;
    },
  };
};

// Outputs of which some are heavy for an input: {takes, heavy: [outputs that are not, outputs that are] as a ratio,
// draw(x, heavy, source)}. Which words are drawn depends neither on x nor on whether the output is heavy.

const subset = ({ size, chosen }) => {
  check(whole(size, 2, 2 ** 20) && whole(chosen, 1, size - 1), "a family of subsets");
  return {
    takes: [["category", size]],
    heavy: ratio(size - chosen, chosen),
    draw: async (x, heavy, draw) => {
      const others = await several(draw, size - 1, chosen);
      const place = await below(draw, chosen);
      return others.map((k, i) => (heavy && i == place ? x : k + (k >= x))).sort((a, b) => a - b);
    },
  };
};

// Points of a projective space over the field of q numbers, q a prime or 4; x's heavy points are its hyperplane.
const projective = ({ size, order: q, length }) => {
  const times = (a, b) => (q == 4 ? +"0000012302310312"[4 * a + b] : (a * b) % q);
  const plus = (a, b) => (q == 4 ? a ^ b : (a + b) % q);
  const points = (t) => (q ** t - 1) / (q - 1);
  const prime = () => {
    for (let d = 2; d * d <= q; d++) if (q % d == 0) return q == 4;
    return 1;
  };
  check(whole(q, 2, 2 ** 24) && whole(length, 2, 24) && points(length) <= 2 ** 24 && prime(), "a projective family");
  check(whole(size, 2, points(length)), "how many points there are");
  const digits = (n, t) => Array.from({ length: t }, (_, i) => Math.floor(n / q ** (t - 1 - i)) % q);
  const vector = (index, t = length) => {
    let free = 0;
    while (free < t - 1 && index >= points(free + 1)) free++;
    return digits(q ** free + index - points(free), t);
  };
  return {
    takes: [["category", size]],
    heavy: ratio(q ** (length - 1), points(length - 1)),
    draw: async (x, heavy, draw) => {
      const inside = vector(await below(draw, points(length - 1)), length - 1);
      const outside = digits(await below(draw, q ** (length - 1)), length - 1);
      const found = heavy ? inside : outside;
      const point = vector(x);
      const place = point.indexOf(1);
      point.splice(place, 1);
      const others = point.reduce((n, a, i) => plus(n, times(a, found[i])), 0);
      found.splice(place, 0, plus(+!heavy, q == 4 ? others : q - others));
      let base = found.find(Boolean);
      let scale = 1;
      for (let e = q - 2; e; e >>= 1) {
        if (e & 1) scale = times(scale, base);
        base = times(base, base);
      }
      const number = found.reduce((n, a) => n * q + times(scale, a), 0);
      let free = 0;
      while (number >= q ** (free + 1)) free++;
      return [number - q ** free + points(free)];
    },
  };
};

// A set's number in the combinatorial number system.
const rank = (members) => Number(members.reduce((n, member, i) => n + comb(member, i + 1), 0n));

const privset = ({ size, most, chosen }) => {
  const items = size + most;
  check(whole(size, 2, 65536) && whole(most, 1, size) && whole(chosen, 1, size), "a family of sets");
  const inputs = comb(items, most);
  check(inputs <= 2n ** 47n, "too many different sets");
  const light = comb(size, chosen);
  const nHeavy = comb(items, chosen) - light;
  const ways = [0n];
  for (let j = 1; j < Math.min(most, chosen); j++) ways.push(ways[j - 1] + comb(most, j) * comb(size, chosen - j));
  const members = (x) => {
    const found = [];
    for (let [i, k, n] = [most, items - 1, BigInt(x)]; i; k--) {
      if (comb(k, i) > n) continue;
      n -= comb(k, i--);
      found.unshift(k);
    }
    return found;
  };
  return {
    takes: [["selection", Number(inputs)]],
    heavy: [light, nHeavy],
    draw: async (x, heavy, draw) => {
      const own = members(x);
      const others = Array.from({ length: items }, (_, k) => k).filter((k) => !own.includes(k));
      const drawn = await bigBelow(draw, nHeavy);
      const shared = heavy ? ways.filter((n) => drawn >= n).length : 0;
      const mine = await shuffled(draw, own, Math.min(most, chosen));
      const rest = await shuffled(draw, others, chosen);
      return [...mine.slice(0, shared), ...rest.slice(0, chosen - shared)].sort((a, b) => a - b);
    },
  };
};

const FAMILIES = { subset: [subset, "size,chosen"], projective: [projective, "size,order,length"], privset: [privset, "size,most,chosen"] };

const heavySet = (channel) => {
  const { family, weight } = channel;
  const [make, names] = check(Object.hasOwn(FAMILIES, family?.name) && FAMILIES[family.name], "an unknown family");
  fields(family, "name," + names);
  check(whole(weight, 1, ONE - 1), "the weight of a heavy set");
  const { takes, heavy, draw } = make(family);
  const [n, d] = [BigInt(weight) * heavy[0], BigInt(ONE - weight) * heavy[1]];
  check(n > d, "heavy outputs must be more likely than others");
  proven(channel, n, d);
  return { takes, draw: async (x, source) => draw(x, (await word(source, 32)) < weight, source) };
};

const CHANNELS = {
  table: [table, "takes,decoders,weights"],
  entries: [entries, "size,decode,weights"],
  heavy_set: [heavySet, "family,weight"],
};

const channelOf = (channel) => {
  const [make, names] = check(Object.hasOwn(CHANNELS, channel?.kind) && CHANNELS[channel.kind], "an unknown channel");
  fields(channel, "kind,mechanism,epsilon," + names);
  return { epsilon: channel.epsilon, ...make(channel) };
};

// ---- Dimensions: {name, fits([reads, size]), place(value, size)}; a place is an input and a fraction of the way on ---

const SPACE = /^(?:[^\S\ufeff]|[\x1c-\x1f\x85])+|(?:[^\S\ufeff]|[\x1c-\x1f\x85])+$/g;
const NUMBER = /^[+-]?(?:D(?:\.D?)?|\.D)(?:e[+-]?D)?$/.source.replaceAll("D", "(\\d+(_\\d+)*)");

// The value of a decimal digit of any script: they stand in runs of ten.
const digit = (character) => {
  let n = 0;
  while (/\p{Nd}/u.test(String.fromCodePoint(character.codePointAt(0) - n - 1))) n++;
  return n % 10;
};

// The number that a value is or says; NaN if it is none. Text is read as Python's float() reads it: "" and "0x10" are
// no numbers, "1_000" and "inf" are.
export const asNumber = (value) => {
  if (typeof value != "string") return /^(number|bigint|boolean)$/.test(typeof value) ? Number(value) : NaN;
  const text = value.replace(SPACE, "").toLowerCase().replace(/\p{Nd}/gu, digit);
  const sign = text[0] == "-" ? -1 : 1;
  if (text == "true" || text == "false") return +(text == "true");
  if (/^[+-]?inf(inity)?$/.test(text)) return sign * Infinity;
  return new RegExp(NUMBER).test(text) && !/[\x1c-\x1f]/.test(value) ? Number(text.replaceAll("_", "")) : NaN;
};

// The category that a value names, as text; undefined if none.
const label = (value) => {
  if (typeof value == "string") return value;
  if (typeof value == "boolean" || typeof value == "bigint" || whole(value, -(2 ** 53), 2 ** 53)) return String(value);
};

// Truth values in lower case, whole numbers without zeros after the point, any other text as it is.
const meaning = (text) => {
  if (/^(true|false)$/i.test(text)) return text.toLowerCase();
  return /^-?[0-9]+[.]0+$/.test(text) ? text.split(".")[0] : text;
};

const finder = (labels) => {
  check(
    Array.isArray(labels) && whole(labels.length, 2, 1e6) && labels.every((text) => typeof text == "string"),
    "categories are at least two texts",
  );
  const [known, meant] = [new Map(), new Map()];
  labels.forEach((text, k) => {
    known.set(text, k);
    meant.set(meaning(text), meant.has(meaning(text)) ? undefined : k);
  });
  check(known.size == labels.length, "a category appears twice");
  return (value) => {
    const text = label(value);
    return text == null ? text : known.get(text) ?? meant.get(meaning(text));
  };
};

const numeric = (dimension) => {
  const { low, high, optional } = dimension;
  const numbers = [low, dimension.default, high];
  check(
    numbers.every(Number.isFinite) && low <= numbers[1] && numbers[1] <= high && high - low >= 1e-290 && high - low < Infinity,
    "low, default and high of a number",
  );
  check(optional === undefined || optional === true, "optional is true or not there");
  const reads = optional ? "optional" : "number";
  return {
    fits: (take) => take[0] == reads,
    place: (value, size) => {
      const found = asNumber(value);
      const levels = size - !!optional;
      if (optional && isNaN(found)) return levels;
      const inside = isNaN(found) ? numbers[1] : Math.min(Math.max(found, low), high);
      const place = ((inside - low) / (high - low)) * ((levels - 1) * FRACTION);
      const floor = Math.floor(place);
      return (floor + (place - floor > 0.5 || (place - floor == 0.5 && floor % 2 == 1))) / FRACTION; // half to even
    },
  };
};

const categorical = (dimension) => {
  const find = finder(dimension.categories);
  const none = dimension.categories.indexOf(dimension.default);
  check(none >= 0, "the default is one of the categories");
  return {
    fits: (take) => take[0] == "category" && take[1] == dimension.categories.length,
    place: (value) => find(value) ?? none,
  };
};

const selection = ({ categories, at_most: most }) => {
  const find = finder(categories);
  const v = categories.length;
  check(whole(most, 1, v) && !categories.some((text) => /[|]/.test(text) || !text.replace(SPACE, "")), "a selection");
  return {
    fits: (take) => take[0] == "selection" && BigInt(take[1]) == comb(v + most, most),
    place: (value) => {
      const parts = typeof value == "string" ? value.split("|").map((part) => part.replace(SPACE, "")) : value;
      const found = [...(parts?.[Symbol.iterator] ? parts : [parts])].filter((part) => part !== "").map(find);
      const chosen = [...new Set(found)].filter((k) => k != null).sort((a, b) => a - b);
      const dummies = Array.from({ length: most }, (_, k) => v + k);
      return rank([...chosen, ...dummies].slice(0, most));
    },
  };
};

const DIMENSIONS = {
  numeric: [numeric, "low,high,default", "optional,curve,group"],
  categorical: [categorical, "categories,default"],
  selection: [selection, "categories,at_most"],
};

const dimensionOf = (dimension, more) => {
  const [make, names, some = "type"] = check(Object.hasOwn(DIMENSIONS, dimension?.type) && DIMENSIONS[dimension.type], "an unknown dimension");
  fields(dimension, "name,type," + names, some + "," + more);
  check(typeof dimension.name == "string" && dimension.name, "a dimension's name");
  return { name: dimension.name, ...make(dimension) };
};

// ---- The survey -----------------------------------------------------------------------------------------------------

// RFC 8785: the one text of a JSON value.
export const canonical = (value) => {
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  if (!value || typeof value != "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => JSON.stringify(key) + ":" + canonical(value[key]))}}`;
};

const sha256 = async (text) => hex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));

// A survey of version 1 had one table for each dimension; as version 2 has it.
const version1 = ({ dimensions, randomizers, bits }) => {
  check(bits === 32, "bits are 32");
  const channels = dimensions.map(({ randomizer, categories }) => {
    const channel = check(randomizers[randomizer], "a randomizer does not exist");
    const { kind, mechanism, epsilon, decode, weights } = channel;
    fields(channel, "kind,mechanism,epsilon,decode,weights");
    const made = { mechanism, epsilon, weights };
    if (kind == "entries") return { kind, ...made, size: categories.length, decode };
    if (kind == "value")
      return { kind: "table", ...made, takes: [{ reads: "number", size: weights.length }], decoders: { value: decode } };
    const v = weights.length;
    const weight = weights[0][0];
    const other = (ONE - weight) / (v - 1);
    check(
      kind == "category" && v <= 256 && decode.length == 2 &&
        weights.every((row, x) => row.length == v && row.every((w, y) => Number.isInteger(w) && w == (x == y ? weight : other))),
      "a randomizer of categories has one weight on its diagonal and one off it",
    );
    return { kind: "heavy_set", mechanism, epsilon, weight, family: { name: "subset", size: v, chosen: 1 } };
  });
  return { channels, questions: dimensions.map((_, j) => ({ dimensions: [j], channel: j })) };
};

// Reads a survey's document (text or object) and proves it: {fingerprint, series, epsilon, m, weighted, questions}.
export const readSurvey = async (given) => {
  const document = JSON.parse(typeof given == "string" ? given : JSON.stringify(given));
  try {
    const { format, version, name, epsilon, n_sampled: m, dimensions, fingerprint } = document;
    const old = version === 1;
    fields(document, "format,version,name,epsilon,n_sampled,dimensions,fingerprint," + (old ? "bits,randomizers" : "questions,channels"));
    check(format == "hdr4me-survey" && (old || version === 2), "its format or version is another");
    check(typeof name == "string" && epsilon === +epsilon && epsilon > 0 && epsilon <= 65536, "its name or epsilon");
    delete document.fingerprint;
    check((await sha256(canonical(document))) === fingerprint, "its fingerprint is another");
    const asked = dimensions.map((dimension) => dimensionOf(dimension, old ? "randomizer" : "type"));
    check(new Set(asked.map((dimension) => dimension.name)).size == asked.length, "a name appears twice");
    const { questions: list, channels } = old ? version1(document) : document;
    const made = channels.map(channelOf);
    const questions = list.map((question) => {
      fields(question, "dimensions,channel", "weight");
      const { dimensions: numbers, channel: k, weight = 1 } = question;
      const channel = check(made[k], "a question's channel does not exist");
      check(whole(weight, 1, 2 ** 20), "a question's weight");
      check(
        numbers.length == channel.takes.length && numbers.every((j, i) => asked[j].fits(channel.takes[i])),
        "a channel does not fit its dimensions",
      );
      return { ...channel, weight, numbers, dimensions: numbers.map((j) => asked[j]) };
    });
    const all = questions.flatMap((question) => question.numbers).sort((a, b) => a - b);
    check(all.length == asked.length && all.every((j, i) => j === i), "every dimension is in one question");
    check(questions.every(({ numbers }, q) => !q || questions[q - 1].numbers[0] < numbers[0]), "the questions' order");
    check(made.every((_, k) => list.some(({ channel }) => channel === k)), "a channel is used by no question");
    const weighted = questions.some(({ weight }) => weight != questions[0].weight);
    check(whole(m, 1, weighted ? 1 : questions.length), "n_sampled");
    const [n, d] = exact(epsilon);
    for (const channel of made) {
      const [a, b] = exact(channel.epsilon);
      check(BigInt(m) * a * d <= n * b, "a channel spends more than its share of epsilon");
    }
    const series = await sha256(canonical({ ...document, name: "" }));
    return { document, fingerprint, series, epsilon, m, weighted, questions };
  } catch (error) {
    stop("FormatError", error.message);
  }
};

// ---- Answers --------------------------------------------------------------------------------------------------------

const drawQuestions = async ({ questions, m, weighted }, draw) => {
  if (!weighted) return several(draw, questions.length, m);
  const drawn = await below(draw, sum(questions.map(({ weight }) => weight)));
  let [total, found] = [0, -1];
  for (const { weight } of questions) {
    found += drawn >= total;
    total += weight;
  }
  return [found];
};

// The input of a question's channel; `fraction(j, reads)` gives the sixteen bits that round dimension j.
const inputOf = async ({ dimensions, numbers, takes }, record, fraction) => {
  let x = 0;
  for (const [i, { name, place }] of dimensions.entries()) {
    const [reads, size] = takes[i];
    let at;
    try {
      at = place(Object.hasOwn(record, name) ? record[name] : undefined, size);
    } catch {
      at = place(undefined, size); // a value may be an object that throws anything at all
    }
    const level = Math.floor(at);
    x = x * size + level + ((await fraction(numbers[i], reads)) < (at - level) * FRACTION);
  }
  return x;
};

// Fresh answers [[question, field, …], …]: the questions, then for each its fractions and what its channel draws.
export const freshAnswers = async (survey, record, draw) => {
  const answers = [];
  for (const q of await drawQuestions(survey, draw)) {
    const question = survey.questions[q];
    const fraction = async (_, reads) => (reads == "category" ? 0 : Number(await word(draw, 16)));
    answers.push([q, ...(await question.draw(await inputOf(question, record, fraction), draw))]);
  }
  return answers;
};

// Permanent answers, and the marks of the rows that must be paid for first; see docs/over-time.md.
export const permanentAnswers = async ({ series, ...survey }, record, key, known, affordable) => {
  const [answers, marks] = [[], []];
  for (const q of await drawQuestions(survey, stream(key, series, 0))) {
    const question = survey.questions[q];
    const sizes = question.takes.map((take) => take[1]);
    const inputs = sizes.reduce((a, b) => a * b);
    if (inputs > 65536) stop("InvalidInput", "permanent answers need channels of at most 65536 inputs");
    let row = await inputOf(question, record, async (j) => Number(await word(stream(key, series, 1, j), 16)));
    const own = [];
    for (let x = 0; x < inputs; x++) own.push(hex(await stream(key, series, 3, q, x)(16)));
    const paid = [...own.keys()].filter((x) => known.includes(own[x]));
    if (!paid.includes(row))
      if (marks.length < affordable || !paid.length) marks.push(own[row]);
      else {
        const distance = (x) => {
          let [total, block] = [0, 1];
          for (let i = sizes.length; i--; block *= sizes[i])
            total += Math.abs((Math.floor(x / block) % sizes[i]) - (Math.floor(row / block) % sizes[i]));
          return total;
        };
        row = paid.reduce((best, x) => (distance(x) < distance(best) ? x : best));
      }
    answers.push([q, ...(await question.draw(row, stream(key, series, 2, q, row)))]);
  }
  return [answers, marks];
};

// ---- Storage: ledger, queue and secret in one record of IndexedDB, changed under a Web Lock -------------------------

const settled = (request, done) =>
  new Promise((resolve, reject) => {
    request[done] = () => resolve(request.result);
    request.onerror = request.onabort = () => reject(request.error);
  });

// update(change): change the state alone, and resolve when it is on the disk; if `change` throws, nothing is written.
// alone(work): run work while no other tab does.
export const browserStore = (name = "hdr4me") => ({
  alone: (work) => navigator.locks.request(name + "-send", work),
  update: (change) =>
    navigator.locks.request(name, async () => {
      const opening = indexedDB.open(name, 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore("state");
      const database = await settled(opening, "onsuccess");
      try {
        const state = (await settled(database.transaction("state").objectStore("state").get(0), "onsuccess")) ?? {};
        const result = await change(state);
        const writing = database.transaction("state", "readwrite", { durability: "strict" });
        writing.objectStore("state").put(state, 0);
        await settled(writing, "oncomplete");
        return result;
      } finally {
        database.close();
      }
    }),
});

// ---- The client -----------------------------------------------------------------------------------------------------

const SECOND = 1000;
const today = () => Math.floor(Date.now() / 864e5);

export class Client {
  #timer;
  #failures = 0;

  // options: url and round of the collector, token, store, permanent, limit, reportsPerSurvey, every (days).
  static async open(document, options = {}) {
    const client = new Client();
    Object.assign(client, { limit: 16, reportsPerSurvey: 1, permanent: false, round: 1, url: "", store: options.store ?? browserStore() }, options);
    const { limit, every = 1, reportsPerSurvey } = client;
    if (!(limit > 0 && limit < Infinity && whole(every, 1, 36500) && whole(reportsPerSurvey, 1, 1e9)))
      stop("InvalidInput", "limit, every or reportsPerSurvey is not allowed: positive numbers are");
    client.survey = await readSurvey(document);
    client.endpoint = `${client.url}/v1/rounds/${client.round}/reports`;
    globalThis.addEventListener?.("online", () => client.flush());
    return client;
  }

  #update(change) {
    return this.store.update((state) => {
      state.version ??= 1;
      if (state.version !== 1) stop("FormatError", "the ledger is of another version, so nothing is spent");
      for (const name of ["spent", "rows", "tapes"]) state[name] ??= {};
      for (const name of ["queue", "sent"]) state[name] ??= [];
      return change(state);
    });
  }

  // How many more answers, at ε/m each, the ledger allows. Amounts are whole numbers of answers, so nothing is rounded.
  #left({ spent }) {
    const { series, epsilon, m } = this.survey;
    const since = this.every ? today() - this.every + 1 : 0;
    const used = (key) => sum(Object.entries(spent[key]?.days ?? {}).map(([day, n]) => (day >= since ? n : 0)));
    let [n, d] = exact(this.limit);
    for (const key in spent) {
      const [a, b] = exact(spent[key].epsilon);
      const c = b * BigInt(spent[key].m);
      [n, d] = [n * c - BigInt(used(key)) * a * d, d * c];
    }
    const [a, b] = exact(epsilon);
    return Math.max(0, Math.min(this.reportsPerSurvey * m - used(series), Number((n * b * BigInt(m)) / (d * a))));
  }

  // The report and its price in answers. Fresh words are kept until they are sent: who looks twice sees the same report.
  async #draw(state, record) {
    const { series, fingerprint, m } = this.survey;
    const [left, known] = [this.#left(state), (state.rows[series] ??= [])];
    let [answers, marks, price] = [0, [], m];
    if (this.permanent) {
      const key = (state.secret ??= await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]));
      [answers, marks] = await permanentAnswers(this.survey, record, key, known, known.length ? left : m);
      price = marks.length;
    } else {
      const tape = (state.tapes[series] ??= []);
      let at = 0;
      answers = await freshAnswers(this.survey, record, (n) => {
        tape.push(...random(Math.max(0, at + n - tape.length)));
        return tape.slice(at, (at += n));
      });
    }
    return { report: { format: "hdr4me-report", version: 1, survey: fingerprint, answers }, marks, price, left };
  }

  // The report that answer() would send for this record now. Nothing is spent and nothing leaves.
  preview(record) {
    return this.#update(async (state) => (await this.#draw(state, record)).report);
  }

  // Pays for a report and puts it into the queue; both are on the disk before anything is sent.
  async answer(record) {
    const item = await this.#update(async (state) => {
      const { series, epsilon, m } = this.survey;
      if (state.out) stop("OptedOut", "this person has opted out: nothing is sent");
      const { report, marks, price, left } = await this.#draw(state, record);
      if (price > left) stop("BudgetExceeded", `the budget for this survey is spent: ${left} of ${price} answers are left`);
      if (price) {
        const { days } = (state.spent[series] ??= { epsilon, m, days: {} });
        days[today()] = (days[today()] ?? 0) + price;
      }
      state.rows[series].push(...marks);
      delete state.tapes[series];
      const item = { id: hex(random(16)), url: this.endpoint, report };
      state.queue.push(item);
      return item;
    });
    this.flush().catch(() => {});
    return item;
  }

  // Sends what waits, each report with the key that was made with it; what fails is tried again, later and later.
  flush() {
    clearTimeout(this.#timer);
    return this.store.alone(async () => {
      const result = { sent: 0, waiting: 0, refused: [] };
      let pause = 0;
      for (const { id, url, report } of await this.#update((state) => state.queue.filter((item) => item.url == this.endpoint))) {
        let status = 0;
        let answer;
        try {
          const headers = { "Content-Type": "application/json", "Idempotency-Key": id };
          if (this.token) headers.Authorization = "Bearer " + this.token;
          answer = await (this.fetch ?? fetch)(url, {
            method: "POST", headers, body: JSON.stringify(report),
            credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", keepalive: true, signal: AbortSignal.timeout(30 * SECOND),
          });
          status = answer.status;
        } catch {}
        if (status < 200 || status >= 500 || [408, 425, 429].includes(status)) {
          result.waiting++;
          pause = Math.max(pause, +answer?.headers.get("Retry-After") || 0);
          continue;
        }
        if (answer.ok) result.sent++;
        else result.refused.push({ id, status });
        await this.#update((state) => {
          state.queue = state.queue.filter((item) => item.id != id);
          if (answer.ok) state.sent.push({ id, url });
        });
      }
      this.#failures = result.waiting ? this.#failures + 1 : 0;
      if (result.waiting) {
        const jitter = (Number(await word(random, 32)) / ONE) * Math.min(300, 2 ** this.#failures);
        this.#timer = setTimeout(() => this.flush().catch(() => {}), (pause + jitter) * SECOND);
      }
      return result;
    });
  }

  // Out: nothing is sent any more, and what waits is dropped. What was spent stays spent.
  optOut(out = true) {
    return this.#update((state) => {
      state.out = out;
      if (out) [state.queue, state.tapes] = [[], {}];
    });
  }

  // Asks the collector to delete what was sent to this round: a report's key is the right to do so.
  async withdraw() {
    let gone = 0;
    for (const { id, url } of await this.#update((state) => state.sent.filter((item) => item.url == this.endpoint))) {
      const { status } = await (this.fetch ?? fetch)(`${url}/${id}`, { method: "DELETE", credentials: "omit" });
      if (status != 204 && status != 404) continue;
      gone++;
      await this.#update((state) => {
        state.sent = state.sent.filter((item) => item.id != id);
      });
    }
    return gone;
  }

  // What the ledger says: how many more reports may be sent, how many wait, how many went.
  status() {
    return this.#update((state) => ({
      left: this.#left(state) / this.survey.m,
      waiting: state.queue.length,
      sent: state.sent.length,
      out: !!state.out,
    }));
  }
}
