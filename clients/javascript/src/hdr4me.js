// The browser client: proves a survey's privacy, randomizes a record, charges the budget, stores and sends the report.
//
// This is the readable source; `npm run build` builds `hdr4me.js` from it. For the same random words both give the same
// answers as the Python client; docs/browser.md specifies the order of the words.

let ONE = 2 ** 32; // the sum of every row of every table; `let`, because the build would inline a constant
const FRACTION = 2 ** 16; // sixteen bits round a number between two levels
const PRECISION = 21; // bits of an entry of a vector

const { abs, floor, min, max, sqrt } = Math;
const big = BigInt;
const num = Number;
const { subtle } = crypto;
const json = JSON.stringify;
const utf8 = (text) => new TextEncoder().encode(text);

const stop = (name, message) => {
  throw Object.assign(Error(message), { name });
};
const check = (holds) => holds || stop("FormatError", "invalid survey");

const range = (n) => [...Array(n).keys()];
const sorted = (numbers) => numbers.sort((a, b) => a - b);
const checkDistinct = (items) => check(new Set(items).size == items.length);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const isText = (value) => typeof value == "string";
const countOf = (object) => Object.keys(object).length;
const isInteger = (x, low, high) => x === floor(x) && low <= x && x <= high;

// ---- Exact arithmetic ----------------------------------------------------------------------------------------------

// A double as a fraction [numerator, denominator]; throws if it is not a finite number.
const exact = (x) => {
  check(x === +x);
  let d = 1n;
  for (; x % 1; x *= 2) d *= 2n;
  return [big(x), d];
};

// The limit of k keeps a malformed survey from blocking the device.
const comb = (n, k) => (check(isInteger(k, 0, FRACTION)), range(k).reduce((found, i) => (found * big(n - i)) / big(i + 1), 1n));

// Whether n/d is at most a rational lower bound of e^ε: ε is halved until it is at most 1/2, the Taylor sum is
// truncated and rounded down, and the result is squared repeatedly with its 160 leading bits.
const within = (n, d, epsilon) => {
  check(epsilon <= FRACTION);
  let [a, b] = exact(epsilon);
  let halvings = 0;
  for (; 2n * a > b; halvings++) b *= 2n;
  let term = 1n << 160n;
  let total = term;
  for (let k = 1n; k < 40n; k++) total += term = (term * a) / (b * k);
  let shift = 0n; // e^ε is at least total · 2^(shift − 160)
  for (; halvings--;) {
    total *= total;
    const surplus = big(total.toString(2).length - 160);
    total >>= surplus;
    shift = 2n * shift + surplus - 160n;
  }
  return n << 160n <= (total * d) << shift;
};

// ---- Random words: a source is a function that returns the next n bytes --------------------------------------------

const random = (n) => crypto.getRandomValues(new Uint8Array(n));
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, 0)).join("");
const word = (source, bytes) => big("0x" + hex(source(bytes)));

// A uniform number below n: the first word below the largest multiple of n, modulo n. A BigInt if n > 2^32.
const below = (source, n) => {
  n = big(n);
  let bits = 32;
  for (; n > 1n << big(bits);) bits += 64 - (bits % 64);
  const all = 1n << big(bits);
  let found;
  do found = word(source, bits / 8);
  while (found >= all - (all % n));
  return n > ONE ? found % n : num(found % n);
};

// `size` distinct numbers below n in increasing order (Floyd's algorithm: one draw for each).
const several = (source, n, size) => {
  const found = [];
  for (let j = n - size; j < n; j++) {
    const t = below(source, j + 1);
    found.push(found.includes(t) ? j : t);
  }
  return sorted(found);
};

// The first n items of a uniform shuffle.
const shuffled = (source, items, n) => {
  for (let i = 0; i < n; i++) {
    const j = i + below(source, items.length - i);
    [items[i], items[j]] = [items[j], items[i]];
  }
  return items.slice(0, n);
};

// The result of `work` on the pseudorandom bytes of a label: blocks of HMAC-SHA256 under the secret. `work` is run
// again with more bytes if it needs them.
const fixed = async (key, series, use, a, b, work) => {
  const bytes = [];
  for (;;) {
    let at = 0;
    const found = work((n) => ((at += n) > bytes.length ? new Uint8Array(n) : bytes.slice(at - n, at)));
    if (at <= bytes.length) return found;
    while (bytes.length < at) {
      const numbers = [a, b, bytes.length / 32].flatMap((n) => [n >> 24, n >> 16, n >> 8, n]);
      const label = [...utf8("hdr4me-permanent-1"), ...series.match(/../g).map((pair) => "0x" + pair), use, ...numbers];
      bytes.push(...new Uint8Array(await subtle.sign("HMAC", key, new Uint8Array(label))));
    }
  }
};

// ---- Channels: {takes: [{reads, size}, …], drawOutput(x, source)}, created only if the proof holds -----------------

// The number of cumulative sums of the weights that are at most a number. All are compared, whatever the number.
const pick = (weights, drawn) => {
  let total = 0;
  let cell = -1;
  for (const weight of weights) {
    cell += drawn >= total;
    total += weight;
  }
  return cell;
};

const checkRows = (rows, one) =>
  check(rows.every((row) => row.length == rows[0].length && row.every((w) => isInteger(w, 0, one)) && sum(row) == one));

// The columns of a table of integer weights whose rows sum to `one`. A column of zeros is never reported; a zero beside
// positive weights would rule out an input.
const columns = (rows, one) => {
  checkRows(rows, one);
  return range(rows[0].length).map((y) => {
    const column = rows.map((row) => row[y]);
    check(column.every((w) => w) || !sum(column));
    return column;
  });
};

// The largest of some ratios, as a fraction.
const largest = (pairs) =>
  pairs.map((pair) => pair.map((w) => big(w || 1))).reduce(([a, b], [c, d]) => (a * d < c * b ? [c, d] : [a, b]));

// The mean of the decoded values in each row is its target, as in the Python client.
const checkUnbiased = (rows, values, target) =>
  check(
    values.length == rows[0].length &&
      values.every((x, y) => x === +x && abs(x) < 1e300 && (!x || rows[0][y])) &&
      rows.every((row, i) => {
        const parts = row.map((w, y) => (w * values[y]) / ONE);
        return abs(sum(parts) - target(i)) <= 1e-7 * (1 + sum(parts.map(abs)));
      }),
  );

const inputOfKind = (reads, size) => [{ reads, size }];

const proven = (epsilon, n, d) => check(n > d && within(n, d, epsilon));

// Draws the cell of a row from 32 bits, or, for a memoized response with two stages, its memoized cell from 16 bits.
// The likelihood ratio of the first stage bounds that of all reports together; both stages multiply to the weights.
const cells = ({ epsilon, weights, stages }, ratio) => {
  proven(epsilon, ...ratio(columns(weights, ONE)));
  if (stages) {
    const { first, second } = stages;
    check(countOf(stages) == 3);
    proven(stages.epsilon, ...ratio(columns(first, FRACTION)));
    checkRows(second, FRACTION);
    const total = (row, y) => sum(row.map((w, k) => w * second[k][y]));
    check(json(weights) == json(first.map((row) => second[0].map((_, y) => total(row, y)))));
  }
  return (x, source, memoize) =>
    stages && memoize ? pick(stages.first[x], word(source, 2)) : pick(weights[x], word(source, 4));
};

const table = (channel) => {
  const { takes, weights, stages, decoders } = channel;
  const cell = cells(channel, (found) => largest(found.map((column) => [max(...column), min(...column)])));
  const inputs = takes.reduce((n, { size }) => (isInteger(size, 2, ONE) ? n * size : 0), 1);
  check(inputs == weights.length && inputs == (stages?.first ?? weights).length);
  let block = inputs;
  let names = 0; // of decoders
  takes.forEach(({ reads, size, ...more }, i) => {
    const levels = size - (reads == "optional");
    block /= size;
    check((levels < size || reads == "number") && !countOf(more));
    const decoder = (name, target) => {
      checkUnbiased(weights, decoders[i ? name + " " + (i + 1) : name], (x) => target(floor(x / block) % size));
      names++;
    };
    decoder("value", (k) => (k < levels ? (2 * k) / (levels - 1) - 1 : 0));
    if (levels < size) decoder("present", (k) => k < levels);
  });
  check(countOf(decoders) == names);
  return { takes, drawOutput: (...draw) => [cell(...draw)] };
};

// Two inputs differ in two bits, so the largest ratios in both directions are multiplied.
const unaryEncoding = (channel) => {
  const { size, weights, decode } = channel;
  const cell = cells(channel, (pairs) => {
    const [a, b] = largest(pairs);
    const [c, d] = largest(pairs.map(([v, w]) => [w, v]));
    return [a * c, b * d];
  });
  check(weights.length == 2);
  checkUnbiased(weights, decode, (x) => x);
  return {
    takes: inputOfKind("category", size),
    drawOutput: (x, ...draw) => range(size).map((k) => cell(+(k == x), ...draw)),
  };
};

// Families of outputs, some of which contain the input x: [takes, the number of outputs without x, the number with x,
// draw(x, contains, source)]. The number of words that are drawn depends neither on x nor on `contains`.

const subset = ({ size, chosen }) => [
  inputOfKind("category", size),
  size - chosen,
  chosen,
  (x, contains, source) => {
    const others = several(source, size - 1, chosen);
    const replaced = below(source, chosen);
    return sorted(others.map((k, i) => (contains && i == replaced ? x : k + (k >= x))));
  },
];

// Points of a projective space over the field of q = p^k elements: the polynomials modulo x^k + Σ mᵢ·xⁱ, each as the
// integer Σ cᵢ·pⁱ. An output contains x if it lies in the hyperplane of x.
const projective = ({ size, order: q, length, modulus = q == 4 ? [1, 1] : [0] }) => {
  const points = (t) => (q ** t - 1) / (q - 1);
  const k = modulus.length;
  const p = Math.round(q ** (1 / k));
  const combined = (a, b, scale) =>
    range(k).reduceRight((n, i) => n * p + (((floor(a / p ** i) % p) + scale * (floor(b / p ** i) % p)) % p), 0);
  const plus = (a, b) => combined(a, b, 1);
  const reduced = modulus.reduceRight((n, m) => n * p + m, 0);
  const times = (a, b) =>
    range(k).reduceRight((n, i) => {
      const top = floor((n * p) / q);
      return combined(combined((n * p) % q, reduced, p - top), a, floor(b / p ** i) % p);
    }, 0);
  const digits = (n, t) => range(t).map((i) => floor(n / q ** (t - 1 - i)) % q);
  const vector = (index, t) => {
    const free = range(t).filter((f) => index >= points(f)).length - 1;
    return digits(q ** free + index - points(free), t);
  };
  check(size <= points(length) && points(length) <= 2 ** 24 && p ** k == q && modulus.every((m) => isInteger(m, 0, p - 1)));
  check(range(4096).every((d) => d < 2 || d * d > p || p % d) && (k < 2 || q <= 256));
  // Without a factor of the modulus, which has at most half of its degree, no product of two elements is zero.
  check(k < 2 || range(p ** floor(k / 2 + 1) * q).every((i) => i < q || !(i % q) || times(floor(i / q), i % q)));
  const containing = points(length - 1);
  return [
    inputOfKind("category", size),
    q ** (length - 1),
    containing,
    (x, contains, source) => {
      const inside = vector(below(source, containing), length - 1);
      const outside = digits(below(source, q ** (length - 1)), length - 1);
      const found = contains ? inside : outside;
      const point = vector(x, length);
      const pivot = point.indexOf(1);
      point.splice(pivot, 1);
      const others = point.reduce((n, a, i) => plus(n, times(a, found[i])), 0);
      found.splice(pivot, 0, plus(+!contains, times(others, p - 1)));
      const first = found.findIndex((a) => a);
      let scale = 1; // the first nonzero element becomes 1
      for (; times(scale, found[first]) != 1;) scale++;
      const number = found.reduce((n, a) => n * q + times(scale, a), 0);
      const free = length - 1 - first;
      return [number - q ** free + points(free)];
    },
  ];
};

// Sets of `chosen` items for sets of `most` items out of `size` categories and `most` dummies; an output contains the
// input if they share an item.
const privset = ({ size, most, chosen }) => {
  const items = size + most;
  const inputs = comb(items, most);
  check(inputs <= 2 ** 47);
  const disjoint = comb(size, chosen);
  const containing = comb(items, chosen) - disjoint;
  const ways = [0n];
  for (let j = 1; j < min(most, chosen); j++) ways.push(ways[j - 1] + comb(most, j) * comb(size, chosen - j));
  return [
    inputOfKind("selection", num(inputs)),
    disjoint,
    containing,
    (x, contains, source) => {
      const own = [];
      const others = [];
      for (let k = items; k--;) {
        const first = comb(k, most - own.length);
        // Once all items are found, x is 0 and no further item matches.
        if (first <= x) {
          x -= num(first);
          own.push(k);
        } else others.push(k);
      }
      const drawn = below(source, containing);
      const shared = contains ? ways.filter((n) => drawn >= n).length : 0;
      const mine = shuffled(source, own.reverse(), min(most, chosen));
      const rest = shuffled(source, others.reverse(), chosen);
      return sorted([...mine.slice(0, shared), ...rest.slice(0, chosen - shared)]);
    },
  ];
};

// A vector of the ball is answered by a seed and the index of one of its codewords. A seed determines all codewords,
// whose numbers are nearly normal; the `heavy` codewords with the largest inner products contain the vector.
const codebook = ({ length, codewords, heavy, seed_bits: bits, precision }) => {
  check(bits <= 32 && precision == PRECISION && 2 * heavy <= codewords && codewords * length <= 2 ** 22);
  const bytes = (bits + 7) >> 3;
  return [
    inputOfKind("vector", ONE * length),
    codewords - heavy,
    heavy,
    (x, contains, source) => {
      const seed = word(source, bytes) >> big(8 * bytes - bits);
      const inside = below(source, heavy);
      const outside = heavy + below(source, codewords - heavy);
      const numbers = halfWords();
      const target = [...x, sqrt(max(0, 1 - sum(x.map((a) => a * a))))];
      const scores = range(codewords).map((index) => {
        const first = (seed << 32n) | (big(index) << 16n);
        let words;
        return sum(
          target.map((a, i) => {
            words = i % 4 ? words >> 16n : mix(first + big(i / 4));
            return numbers[num(words & 0xffffn)] * a;
          }),
        );
      });
      const order = range(codewords).sort((a, b) => scores[b] - scores[a]);
      return [num(seed), order[contains ? inside : outside]];
    },
  ];
};

// SplitMix64 at a position of its sequence.
const mix = (counter) => {
  const step = (z, shift, factor) => big.asUintN(64, (z ^ (z >> shift)) * factor);
  const z = step(step(big.asUintN(64, counter * 0x9e3779b97f4a7c15n), 30n, 0xbf58476d1ce4e5b9n), 27n, 0x94d049bb133111ebn);
  return z ^ (z >> 31n);
};

// The number of each of the 65,536 half words: the mean of a normal number in its bin, of 256 bins of width 1/28.
let found;
const halfWords = () => {
  if (found) return found;
  const density = (x) => Math.exp((-x * x) / 2) / sqrt(2 * Math.PI);
  const distribution = (x) => {
    let term = x;
    let total = x;
    for (let k = 3; k < 200; k += 2) total += term *= (x * x) / k;
    return 0.5 + total * density(x);
  };
  const lower = range(128).map((k) => Math.round(FRACTION * distribution((k - 128) / 28)));
  const ends = [...lower, FRACTION / 2, ...lower.toReversed().map((n) => FRACTION - n)];
  const densities = ends.map((end, k) => {
    let x = (k - 128) / 28;
    if (end % FRACTION) for (let i = 9; i--;) x -= (distribution(x) - end / FRACTION) / density(x);
    return end % FRACTION ? density(x) : 0;
  });
  found = [];
  for (let k = 0; k < 256; k++)
    for (let n = ends[k + 1] - ends[k], i = n; i--;) found.push(((densities[k] - densities[k + 1]) * FRACTION) / n);
  return found;
};

const families = { __proto__: null, subset, projective, privset, codebook };

const kSubset = ({ epsilon, family: { name, modulus, ...sizes }, weight }) => {
  check(countOf(sizes) == { subset: 2, projective: 3, privset: 3, codebook: 5 }[name] && (!modulus || sizes.order));
  check(Object.values({ ...sizes, weight }).every((n) => isInteger(n, 1, ONE)));
  const [takes, others, containing, choose] = families[name]({ ...sizes, modulus });
  // With invalid parameters one of the two numbers is not positive, and the proof fails.
  proven(epsilon, big(weight) * big(others), big(ONE - weight) * big(containing));
  return { takes, drawOutput: (x, source) => choose(x, word(source, 4) < weight, source) };
};

const channelKinds = { __proto__: null, table, entries: unaryEncoding, heavy_set: kSubset };

// ---- Dimensions: {reads, size, leaves, codeOf(record, size)} ---------------------------------------------------------
//
// The code is an input plus a fraction of the way to the next, or the vector itself; a hash gives a promise of it. The
// leaves are the dimensions that read columns: {column, toCode(value, size)}. docs/derived-inputs.md specifies the
// dimensions that are computed from others.

const trim = (text) => text.replace(/^([^\S\ufeff]|[\x1c-\x1f\x85])+|([^\S\ufeff]|[\x1c-\x1f\x85])+$/g, "");

// The number that a value represents, or NaN. Text is parsed as by Python's float(): "" and "0x10" are not numbers,
// "1_000" and "inf" are. (Python also accepts digits of other scripts.)
const asNumber = (value) => {
  if (!isText(value)) return typeof value == "object" ? NaN : num(value);
  const lower = trim(value).toLowerCase();
  const text = lower.replace(/(\d)_(?=\d)/g, "$1").replace(/inf(inity)?$/, "Infinity");
  return /^$|[xbo\ufeff]/.test(lower) ? NaN : ({ true: 1, false: 0 }[lower] ?? +text);
};

// Boolean values in lower case, integers without zeros after the point, any other text unchanged.
const normalized = (text) =>
  text.replace(/^(true|false)$/i, (truth) => truth.toLowerCase()).replace(/^(-?\d+)\.0+$/, "$1");

// The index of the category that a value names: the category with its text, or the only one with its normalized text;
// otherwise `none`.
// Every label is compared, whatever the value, so that the time does not depend on it.
const find = (labels, value, none) => {
  const text = label(value);
  const matches = (form) => range(labels.length).filter((k) => form(labels[k]) === form("" + text));
  const [alike = none, ...others] = matches(normalized);
  const [same = others.length ? none : alike] = matches((text) => text);
  return text == null ? none : same;
};

// The text of a value: a number without an exponent, true or false; otherwise undefined.
const label = (value) => {
  const number = value === +value && (value % 1 ? value * value >= 1e-8 : isInteger(value, -(2 ** 53), 2 ** 53));
  if (number || isText(value) || value === !!value) return "" + value;
};

// The text of a value unless it is blank or unreadable.
const readable = (value) => {
  const text = label(value);
  if (text && trim(text) && !/\p{Cs}|\ufffd/u.test(text)) return text;
};

// Rounds to an integer, half to even.
const rounded = (x) => x + 1.5 * 2 ** 52 - 1.5 * 2 ** 52;

// An object may throw any exception.
const safely = (work, record, column) => {
  try {
    return work(record[column]);
  } catch {
    return work(null);
  }
};

// A dimension that reads one column.
const leaf = (column, reads, toCode, more) => {
  check(isText(column) && column);
  const codeOf = (record, size) => safely((value) => toCode(value, size), record, column);
  const made = { column, reads, toCode, codeOf, ...more };
  return { ...made, leaves: [made] };
};

// The code of an unusable value is NaN or −1 if the survey declares no default. (As an input, −1 is the last one: for a
// selection, nothing chosen.)
const numeric = ({ name, low, high, optional, default: fallback = NaN, unit = "-", curve = unit, group = unit, ...more }) => {
  const clamp = (x) => min(max(x, low), high);
  check(!countOf(more) && [unit, curve, group].every((text) => isText(text) && text) && /^\S+( \S+)*$/.test(unit));
  check([low, high, high - low].every(num.isFinite) && high - low >= 1e-290 && [NaN, clamp(fallback)].includes(fallback));
  const clean = (value) => {
    const number = asNumber(value);
    return number == number ? clamp(number) : fallback;
  };
  const share = (value) => (clean(value) - low) / (high - low);
  const toCode = (value, size) => {
    const number = asNumber(value);
    size -= !!optional;
    return optional && number != number ? size : position(share(value), size);
  };
  return leaf(name, optional ? "optional" : "number", toCode, { clean, share, optional, low, high });
};

const position = (share, size) => rounded(share * ((size - 1) * FRACTION)) / FRACTION;

const checkNames = (names, more) => {
  checkDistinct(names);
  check(names[1] != null && names.every(isText) && !countOf(more));
};

const categorical = ({ name, categories, default: fallback, ...more }) => {
  checkNames(categories, more);
  const none = categories.indexOf(fallback);
  check(none >= 0 || fallback == null);
  return leaf(name, "category", (value) => find(categories, value, none), { size: categories.length, isLabel: 1 });
};

// A set of categories, filled up with dummies, by its index in the combinatorial number system.
const selection = ({ name, categories, at_most: most, ...more }) => {
  checkNames(categories, more);
  check(categories.every((text) => trim(text) && !text.includes("|")) && most <= categories.length);
  const v = categories.length;
  const toCode = (value) => {
    const parts = [isText(value) ? value.split("|").map(trim) : value].flat();
    const found = parts.map((part) => find(categories, part));
    const members = range(v + most)
      .filter((k) => k >= v || found.includes(k))
      .slice(0, most);
    if (value == null || (members[0] >= v && parts.join(""))) return -1;
    return num(members.reduce((n, member, i) => n + comb(member, i + 1), 0n));
  };
  return leaf(name, "selection", toCode, { size: num(comb(v + most, most)) });
};

const bucket = ({ name, edges, default: fallback = NaN, column = name, ...more }) => {
  check(!countOf(more) && edges.length > 2 && edges.every((x, i) => num.isFinite(x) && !(x <= edges[i - 1])));
  check([NaN, min(max(fallback, edges[0]), edges.at(-1))].includes(fallback));
  const inner = edges.slice(1, -1);
  const toCode = (value) => {
    const number = asNumber(value);
    const clean = number == number ? number : fallback;
    return clean == clean ? inner.filter((edge) => edge <= clean).length : -1;
  };
  return leaf(column, "category", toCode, { size: edges.length - 1 });
};

const hash = ({ name, buckets, seed, default: fallback, column = name, ...more }) => {
  check(!countOf(more) && isInteger(buckets, 2, 1e6) && isInteger(seed, 0, 2 ** 53 - 1) && (fallback == null || (isText(fallback) && readable(fallback))));
  const toCode = (value) => {
    const text = readable(value) ?? fallback;
    const digest = subtle.digest("SHA-256", utf8(seed + ":" + text));
    return digest.then((bytes) => (text ? num(new DataView(bytes).getBigUint64() % big(buckets)) : -1));
  };
  return leaf(column, "category", toCode, { size: buckets, isLabel: 1 });
};

const prefix = ({ name, prefix: [part, ...others], length, ...more }) => {
  const { column, toCode, size, isLabel } = dimensionOf(part);
  check(!countOf(more) && isLabel && part.type != "prefix" && !others[0] && isInteger(length, 1, 2 ** 53 - 1));
  const cut = (value) => {
    const found = readable(value);
    return found ? [...found].slice(0, length).join("") : value;
  };
  return leaf(column, "category", (value) => toCode(cut(value)), { size, isLabel: 1 });
};

// The dimensions that others are computed from: at least two, with different names.
const partsOf = (items) => {
  checkDistinct(items.map(({ name }) => name));
  check(items[1]);
  return items.map(dimensionOf);
};

const joint = ({ name, joint: items, ...more }) => {
  const parts = partsOf(items);
  const size = parts.reduce((n, part) => (part.reads == "category" && part.column ? n * part.size : NaN), 1);
  check(size <= 1e6 && !countOf(more));
  const codeOf = async (record) => {
    let found = 0;
    for (const part of parts) found = found * part.size + (((await part.codeOf(record)) + part.size) % part.size);
    return found;
  };
  return { reads: "category", size, leaves: parts, codeOf };
};

const numbers = (items) =>
  partsOf(items).map((part) => (check(part.reads == "number" && part.clean), part));

const product = ({ name, product: names, ...more }, dimensions) => {
  check(!countOf(more) && names.length == 2 && !names.includes(name));
  const parts = numbers(names.map((own) => dimensions.find((other) => other.name === own)));
  const codeOf = (record, size) => {
    const [s, t] = parts.map(({ share, column }) => 2 * safely(share, record, column) - 1);
    return position((s * t + 1) / 2, size);
  };
  return { reads: "number", leaves: parts, codeOf };
};

const outer = ({ name, outer: items, shift, scale, norm, ...more }) => {
  const parts = numbers(items);
  const n = parts.length;
  const length = (n * (n + 1)) / 2;
  check(!countOf(more) && length <= 4096 && shift.length == n && scale.length == n && norm >= 1e-290 && norm <= 1e290 && norm === +norm);
  parts.forEach(({ low, high }, i) => {
    check([shift[i], scale[i]].every(num.isFinite) && scale[i] > 0);
    check(max(abs(low - shift[i]), abs(high - shift[i])) / scale[i] <= 1e100);
  });
  const one = 2 ** (PRECISION - 1) - 1;
  const codeOf = (record) => {
    const z = parts.map(({ clean, column }, i) => (safely(clean, record, column) - shift[i]) / scale[i]);
    const size = max(sum(z.map((x) => x * x)), norm);
    const entries = z.flatMap((a, i) => z.slice(i).map((b, j) => (j ? a * b * sqrt(2) : a * b) / size));
    return entries.map((x) => (rounded(x * one) + one) / one - 1);
  };
  return { reads: "vector", size: ONE * length, leaves: parts, codeOf };
};

const dimensionKinds = { __proto__: null, numeric, categorical, selection, bucket, hash, prefix, joint, product, outer };
const dimensionOf = ({ type, ...rest }, dimensions) => {
  // Python writes no field that is null or false.
  check(isText(rest.name) && rest.name && Object.values(rest).every((value) => (value ?? false) !== false));
  check([, true].includes(rest.optional));
  if (!dimensionKinds[type]) stop("Unsupported", `${type} dimensions`);
  return dimensionKinds[type](rest, dimensions);
};

// ---- The survey ----------------------------------------------------------------------------------------------------

// RFC 8785: the canonical text of a JSON value, with the names of all objects in order. (A name that is a number is
// left out, so that its document has another fingerprint and is refused.)
const canonical = (value) => {
  const names = new Set();
  json(value, (name, item) => (isNaN(name) && names.add(name), item));
  return json(value, [...names].sort());
};

const fingerprint = async (document) => hex(await subtle.digest("SHA-256", utf8(canonical(document))));

// Parses a survey document (text or object) and proves its privacy. Every other fault is a FormatError, too.
const readSurvey = (document) =>
  parsed(document).catch((error) => (error.name == "Unsupported" ? Promise.reject(error) : check()));
const parsed = async (document) => {
  const text = isText(document) ? document : json(document);
  const { fingerprint: claimed, ...body } = JSON.parse(text);
  const { format, version, epsilon, n_sampled: m, dimensions, channels, questions: list, row_budget: rows = 1, tolerance } = body;
  // No object has a duplicate name, and every string has a UTF-8 form: JSON escapes a lone surrogate as \ud….
  const colons = (text) => text.replace(/"(\\.|[^"\\])*"/g, 0).split(":").length;
  const again = json(JSON.parse(text));
  check(colons(text) == colons(again) && !/[^\\](\\\\)*\\ud/.test(again));
  check(format == "hdr4me-survey" && version === 2 && isText(body.name));
  check(claimed == (await fingerprint(body)) && isInteger(rows, 1, FRACTION));
  check(countOf(body) == 8 + !!tolerance + ("row_budget" in body));
  const asked = dimensions.map((item) => dimensionOf(item, dimensions));
  check(epsilon <= FRACTION);
  const [n, d] = exact(epsilon);
  let memoizedEpsilon = 0; // the cost of a memoized response with two stages
  const made = channels.map((channel) => {
    const [a, b] = exact(channel.epsilon);
    const { kind, stages, weight, mechanism } = channel;
    check(big(m) * a * d <= n * b && countOf(channel) == (weight ? 5 : 6 + !!stages));
    check(isText(mechanism) && /^([^\p{C}\p{Z}]| )+$/u.test(mechanism)); // printable
    memoizedEpsilon = max(memoizedEpsilon, stages?.epsilon ?? 0);
    return channelKinds[kind](channel);
  });
  // Each dimension is in one question, in order, and each channel is used.
  const isRange = (numbers, all) => check(json(sorted(numbers)) == json(range(all.length)));
  let last = -1;
  const weighted = list.some(({ weight }) => weight > 1); // otherwise Python writes no weights
  isRange(list.flatMap(({ dimensions: numbers }) => numbers), dimensions);
  isRange([...new Set(list.map(({ channel }) => channel))], channels);
  const names = dimensions.map(({ name }) => name);
  checkDistinct(names);
  if (tolerance) {
    const { by_dimension: own, probability, jointly } = tolerance;
    check(countOf(tolerance) == 3 && probability < 1 && jointly === !!jointly && countOf(own));
    check([probability, ...Object.values(own)].every((x) => x === +x && x > 0));
    check(Object.keys(own).every((name) => names.includes(name)));
  }
  const questions = list.map((question) => {
    const { dimensions: numbers, channel, weight = 1 } = question;
    check(countOf(question) == 2 + weighted && numbers[0] > last);
    last = numbers[0];
    const { takes, drawOutput } = made[channel];
    check(isInteger(weight, 1, 2 ** 20) && takes.length == numbers.length);
    const parts = numbers.map((j, i) => {
      const { reads, size } = takes[i];
      const part = { size, ...asked[j], j };
      check(part.reads == reads && part.size === size);
      return part;
    });
    return { parts, drawOutput, weight, stages: channels[channel].stages };
  });
  check(isInteger(m, 1, questions.length));
  const series = await fingerprint({ ...body, name: "" });
  return { ...body, fingerprint: claimed, series, m, rows, questions, memoizedEpsilon };
};

// ---- Answers -------------------------------------------------------------------------------------------------------

const drawQuestions = ({ questions, m }, source) => {
  const weights = questions.map(({ weight }) => weight);
  return weights.some((weight) => weight != weights[0])
    ? [pick(weights, below(source, sum(weights)))]
    : several(source, weights.length, m);
};

// The input of a question's channel; `fraction(i, reads)` returns the sixteen bits that round its dimension i.
const inputOf = async ({ parts }, record, fraction) => {
  const codes = await Promise.all(parts.map(({ codeOf, size }) => codeOf(record, size)));
  return parts.reduce((x, { size, reads }, i) => {
    const bits = fraction(i, reads);
    const code = codes[i];
    return reads == "vector" ? code : x * size + ((floor(code) + size) % size) + (bits < (code % 1) * FRACTION);
  }, 0);
};

// Refuses a record with unknown names, or with unusable values for which the survey declares no default, before
// any random draw. The error has names and no values.
const checkRecord = async ({ questions }, record) => {
  const leaves = questions.flatMap(({ parts }) => parts.flatMap((part) => part.leaves));
  const codes = await Promise.all(leaves.map(({ codeOf, size = 3 }) => codeOf(record, size)));
  const known = new Set(leaves.map(({ column }) => column));
  const unusable = leaves.filter((_, i) => !(codes[i] >= 0)).map(({ column }) => column);
  const wrong = new Set([...unusable, ...Object.keys(record ?? {}).filter((name) => !known.has(name))]);
  if (wrong.size) stop("InvalidInput", "unknown or unusable: " + [...wrong]);
};

// Answers with fresh noise, [[question, field, …], …]: draws the questions, then the fractions and output of each.
const fresh = async (survey, record, source) => {
  const answers = [];
  for (const q of drawQuestions(survey, source)) {
    const question = survey.questions[q];
    const x = await inputOf(question, record, (_, reads) => (reads == "category" ? 0 : word(source, 2)));
    answers.push([q, ...question.drawOutput(x, source)]);
  }
  return answers;
};

// Memoized responses, and the marks of the rows to pay for first; docs/over-time.md specifies them.
const memoized = async (survey, record, key, known, affordable, fresh) => {
  const answers = [];
  const marks = [];
  const secret = (...label) => fixed(key, survey.series, ...label);
  for (const q of await secret(0, 0, 0, (source) => drawQuestions(survey, source))) {
    const question = survey.questions[q];
    const { parts, drawOutput, stages } = question;
    const count = parts.reduce((n, { size }) => n * size, 1);
    check(count <= FRACTION);
    const rows = range(count);
    const fractions = await Promise.all(parts.map(({ j }) => secret(1, j, 0, (source) => word(source, 2))));
    const own = await Promise.all(rows.map((x) => secret(3, q, x, (source) => hex(source(16)))));
    let row = await inputOf(question, record, (i) => fractions[i]);
    const paid = known.map((mark) => own.indexOf(mark)).filter((x) => x >= 0); // in order of payment
    // Once the budget is spent, the row paid for last answers, whatever the value.
    if (paid.length && marks.length >= affordable) row = paid.at(-1);
    else if (!paid.includes(row)) marks.push(own[row]);
    const output = await secret(2, q, row, (source) => drawOutput(row, source, 1));
    answers.push([q, ...output.map((k) => (stages ? pick(stages.second[k], word(fresh, 2)) : k))]);
  }
  return [answers, marks];
};

// ---- Storage: ledger, queue and secret in one record of IndexedDB, changed under a Web Lock ------------------------

const settled = (request, done = "onsuccess") =>
  new Promise((resolve, reject) => {
    request[done] = () => resolve(request.result);
    request.onerror = request.onabort = () => reject(request.error);
  });

// update(change): change the state exclusively, and resolve when it is on the disk; if `change` throws, write nothing.
// alone(work): run work while no other tab does.
const browserStore = (name = "hdr4me") => ({
  alone: (work) => navigator.locks.request(name + "-send", work),
  update: (change) =>
    navigator.locks.request(name, async () => {
      const opening = indexedDB.open(name, 1); // fails for a newer version of the database
      opening.onupgradeneeded = () => opening.result.createObjectStore(name);
      const database = await settled(opening);
      try {
        const state = (await settled(database.transaction(name).objectStore(name).get(0))) ?? {};
        const result = await change(state);
        const writing = database.transaction(name, "readwrite", { durability: "strict" });
        writing.objectStore(name).put(state, 0);
        await settled(writing, "oncomplete");
        return result;
      } finally {
        database.close();
      }
    }),
});

// ---- The client ----------------------------------------------------------------------------------------------------

const today = () => floor(Date.now() / 864e5);

class Client {
  #timer;
  #failures = 0;

  static async open(document, options) {
    const survey = await readSurvey(document);
    const { epsilon, m, memoizedEpsilon } = survey;
    const defaults = { store: browserStore(), url: "", limit: 16, reports: survey.rows, survey, epsilon, share: m };
    const client = Object.assign(new Client(), defaults, options);
    // Memoized responses with a second stage cost the budget of all their reports together.
    if (client.memoized && memoizedEpsilon * m > epsilon) [client.epsilon, client.share] = [memoizedEpsilon, 1];
    client.reportsUrl = `${client.url}/v1/rounds/${client.round}/reports`;
    globalThis.addEventListener?.("online", () => client.flush()); // absent in Node
    return client;
  }

  #update(change) {
    return this.store.update((state) =>
      change(Object.assign(state, { spent: [], own: {}, queue: [], sent: [], refused: [], ...state })),
    );
  }

  // The number of further answers that the budget allows. An answer costs epsilon/share; the ledger stores integer
  // numbers of answers, so nothing is rounded.
  #left({ spent }) {
    const { series, m } = this.survey;
    let used = 0;
    let [n, d] = exact(this.limit);
    for (const charge of spent)
      // Without a period the comparison is with NaN, and every charge counts.
      if (!(charge.day <= today() - this.every)) {
        const [a, b] = exact(charge.epsilon);
        const c = b * big(charge.share);
        n = n * c - big(charge.answers) * a * d;
        d *= c;
        if (charge.series == series) used += charge.answers;
      }
    const [a, b] = exact(this.epsilon);
    return min(this.reports * m - used, num((n * b * big(this.share)) / (d * a)));
  }

  // The report, the stored rows and the new marks. Fresh random bytes are stored until the report is sent, so
  // that repeated previews show the same report and permit no choice between reports.
  async #draw(state, record) {
    const { survey } = this;
    const { series, fingerprint, m } = survey;
    await checkRecord(survey, record);
    const own = (state.own[series] ??= { rows: [], tape: [] });
    const { rows, tape } = own;
    let at = 0;
    const source = (n) => {
      tape.push(...random(max(0, at + n - tape.length)));
      return tape.slice(at, (at += n));
    };
    if (this.memoized)
      state.secret ??= await subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);
    const [answers, marks] = this.memoized
      ? await memoized(survey, record, state.secret, rows, rows.length ? this.#left(state) : m, source)
      : [await fresh(survey, record, source)];
    return [{ format: "hdr4me-report", version: 1, survey: fingerprint, answers }, own, marks];
  }

  // The report that answer() would send for this record now. Nothing is charged and nothing is sent.
  preview(record) {
    return this.#update(async (state) => (await this.#draw(state, record))[0]);
  }

  // Charges a report and adds it to the queue, both on the disk before anything is sent, and tries to send it. Rejects
  // if the collector refuses the report. The state has the same size whether rows are new or not: otherwise an error on
  // a full disk would reveal that a value changed.
  async answer(record) {
    const item = { id: hex(random(16)), url: this.reportsUrl };
    await this.#update(async (state) => {
      const { epsilon, share, survey: { m, series } } = this;
      if (state.out) stop("OptedOut", "opted out");
      const [report, own, marks = []] = await this.#draw(state, record);
      const answers = this.memoized ? marks.length : m;
      if (answers && answers > this.#left(state)) stop("BudgetExceeded", "budget is spent");
      // Random marks and a charge replace those that are not needed, in an array that is stored like `rows`, so that the
      // size does not depend on the value.
      own.pad = own.rows.slice(0, 0);
      own.pad.push(...range(m - answers).map(() => hex(random(16))));
      (answers ? state.spent : own.pad).push({ day: today(), series, epsilon, share, answers });
      own.rows.push(...marks);
      own.tape = [];
      item.report = report;
      state.queue.push(item);
    });
    const refusal = (await this.flush()).refused.find(({ id }) => id == item.id);
    if (refusal) stop("Refused", `status ${refusal.status}`);
    return item;
  }

  // Sends the waiting reports, each with its own key. Failed reports are sent again after increasing delays.
  flush() {
    clearTimeout(this.#timer);
    return this.store.alone(async () => {
      const { queue, refused } = await this.#update((state) => state);
      const result = { sent: 0, waiting: 0, refused };
      for (const { id, url, report } of queue) {
        if (url != this.reportsUrl) continue;
        const body = json(report);
        const { ok, status = 0 } = await fetch(url, {
          method: "POST",
          headers: { "Content-Type": "application/json", "Idempotency-Key": id, ...this.headers },
          body,
          credentials: "omit",
          keepalive: body.length < 6e4, // a browser refuses more than 64 KiB
        }).catch(() => 0);
        if (/^[05]|408|429/.test(status)) {
          result.waiting++;
          continue;
        }
        result.sent += ok;
        await this.#update((state) => {
          state.queue = state.queue.filter((item) => item.id != id);
          (ok ? state.sent : state.refused).push({ id, url, status });
          result.refused = state.refused;
        });
      }
      this.#failures = result.waiting && this.#failures + 1;
      // From 0 to 2, 4, 8, … seconds, at most 512.
      const delay = random(1)[0] * 3.9 * 2 ** min(9, this.#failures);
      if (result.waiting) this.#timer = setTimeout(() => this.flush(), delay);
      return result;
    });
  }

  // Opting out: nothing more is sent, and waiting reports are dropped. The spent budget stays spent.
  optOut(out = true) {
    return this.#update((state) => {
      state.out = out;
      if (out) state.queue = [];
    });
  }

  // The number of further reports that the budget allows, the number of waiting reports, the keys of the delivered
  // ones, and whether the person opted out.
  status() {
    return this.#update((state) => ({
      left: this.#left(state) / this.survey.m,
      waiting: state.queue.length,
      sent: state.sent,
      refused: state.refused,
      out: state.out,
    }));
  }
}

export { Client, below, browserStore, fixed, fresh, memoized, readSurvey };
