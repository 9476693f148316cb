// hdr4me in the browser: a survey is proven, a record is randomised, the report is paid for, kept and sent.
//
// This is the readable source; `hdr4me.js` beside it is built from it (`npm run build`). For the same random words both
// give the same answers as the Python client; docs/browser.md has the order of the words.

let ONE = 2 ** 32; // every row of every table sums to this; `let`, or the build would repeat it
const FRACTION = 2 ** 16; // a number between two levels is rounded by sixteen bits

const { floor, min, max, abs } = Math;
const [big, num] = [BigInt, Number];
const { subtle } = crypto;
const json = JSON.stringify;
const utf8 = (text) => new TextEncoder().encode(text);

const stop = (name, message) => {
  throw Object.assign(Error(message), { name });
};
const check = (holds, what = "not a survey") => holds || stop("FormatError", what);

const range = (n) => [...Array(n).keys()];
const sorted = (numbers) => numbers.sort((a, b) => a - b);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const whole = (x, low, high) => x === floor(x) && low <= x && x <= high;

// ---- Exact numbers --------------------------------------------------------------------------------------------------

const bitLength = (n) => n.toString(2).length;

// A double as a fraction [numerator, denominator]; throws if it is not finite.
const exact = (x) => {
  let d = 1n;
  for (; x % 1; x *= 2) d *= 2n;
  return [big(x), d];
};

const comb = (n, k) => range(k).reduce((found, i) => (found * big(n - i)) / big(i + 1), 1n);

// Whether n/d is at most e^ε, by a rational number that is provably not larger than e^ε: ε is halved until it is at
// most 1/2, the Taylor sum is cut and floored, and the result is squared back with its 160 leading bits.
const within = (n, d, epsilon) => {
  let [a, b] = exact(epsilon);
  let halvings = 0;
  for (; 2n * a > b; halvings++) b *= 2n;
  let term = 1n << 160n;
  let total = term;
  for (let k = 1n; k < 40n; k++) total += term = (term * a) / (b * k);
  let shift = 0n; // e^ε is at least total · 2^(shift − 160)
  for (; halvings--;) {
    total *= total;
    const surplus = big(bitLength(total) - 160);
    total >>= surplus;
    shift = 2n * shift + surplus - 160n;
  }
  return n << 160n <= (total * d) << shift;
};

// ---- Random words: a source is a function that gives the next n bytes -----------------------------------------------

const random = (n) => crypto.getRandomValues(new Uint8Array(n));
const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, 0)).join("");
const word = (source, bits) => big("0x" + hex(source(bits / 8)));

// A uniform number below n: the first word under the largest multiple of n, modulo n. A BigInt if n > 2^32.
const below = (source, n) => {
  n = big(n);
  const bits = n > ONE ? floor((bitLength(n - 1n) + 63) / 64) * 64 : 32;
  const all = 1n << big(bits);
  let found;
  do found = word(source, bits);
  while (found >= all - (all % n));
  return n > ONE ? found % n : num(found % n);
};

// `size` different numbers below n in increasing order (Floyd's algorithm: one draw for each).
const several = (source, n, size) => {
  const found = [];
  for (let j = n - size; j < n; j++) {
    const t = below(source, j + 1);
    found.push(found.includes(t) ? j : t);
  }
  return sorted(found);
};

// The first n of the items in uniform order.
const shuffled = (source, items, n) => {
  for (let i = 0; i < n; i++) {
    const j = i + below(source, items.length - i);
    [items[i], items[j]] = [items[j], items[i]];
  }
  return items.slice(0, n);
};

// What `work` makes of the fixed bytes that the secret gives for a label: blocks of HMAC-SHA256. It is run again with
// more bytes if it ran out of them; what it makes depends on nothing else.
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

// ---- Channels: {takes: [{reads, size}, …], drawOutput(x, source)}, made only if the proof holds ---------------------

// How many running sums of the weights are at or below a number. Every one is compared, whatever the number.
const pick = (weights, drawn) => {
  let [total, cell] = [0, -1];
  for (const weight of weights) {
    cell += drawn >= total;
    total += weight;
  }
  return cell;
};

// The columns of a table of whole weights whose rows sum to `one`. A column of zeros is never reported; one zero among
// other weights would give an input away.
const columns = (rows, one) => {
  const n = rows[0].length;
  check(rows.every((row) => row.length == n && row.every((w) => whole(w, 0, one)) && sum(row) == one));
  return range(n).map((y) => {
    const column = rows.map((row) => row[y]);
    check(column.every((w) => w) || !sum(column));
    return column;
  });
};

// The largest of some ratios, as a fraction.
const largest = (pairs) =>
  pairs.map((pair) => pair.map((w) => big(w || 1))).reduce(([a, b], [c, d]) => (a * d < c * b ? [c, d] : [a, b]));

const taking = (reads, size) => [{ reads, size }];

const proven = (epsilon, n, d) => check(n >= d && within(n, d, epsilon), "a channel leaks");

// How a row's cell is drawn: from 32 bits, or, if the answer lasts and has a second stage, a lasting cell from 16 bits.
// The loss of the first stage bounds all reports together; what is made of a lasting cell tells nothing more.
const cells = ({ epsilon, weights, stages }, loss) => {
  proven(epsilon, ...loss(columns(weights, ONE)));
  if (stages) proven(stages.epsilon, ...loss(columns(stages.first, FRACTION)));
  return (x, source, lasts) =>
    stages && lasts ? pick(stages.first[x], word(source, 16)) : pick(weights[x], word(source, 32));
};

const table = (channel) => {
  const { takes, weights, stages } = channel;
  const cell = cells(channel, (found) => largest(found.map((column) => [max(...column), min(...column)])));
  const inputs = takes.reduce((n, { size }) => (whole(size, 2, ONE) ? n * size : 0), 1);
  check(inputs == weights.length && inputs == (stages?.first ?? weights).length);
  return { takes, drawOutput: (...draw) => [cell(...draw)] };
};

// Two inputs differ in two entries, so the largest ratios both ways multiply.
const entries = (channel) => {
  const { size } = channel;
  const cell = cells(channel, (pairs) => {
    const [a, b] = largest(pairs);
    const [c, d] = largest(pairs.map(([v, w]) => [w, v]));
    return [a * c, b * d];
  });
  return {
    takes: taking("category", size),
    drawOutput: (x, ...draw) => range(size).map((k) => cell(+(k == x), ...draw)),
  };
};

// Outputs of which some are heavy for an input: [takes, how many are not, how many are, draw(x, heavy, source)].
// Which words are drawn depends neither on x nor on whether the output is heavy.

const subset = ({ size, chosen }) => [
  taking("category", size),
  size - chosen,
  chosen,
  (x, heavy, source) => {
    const others = several(source, size - 1, chosen);
    const place = below(source, chosen);
    return sorted(others.map((k, i) => (heavy && i == place ? x : k + (k >= x))));
  },
];

// Points of a projective space over the field of q numbers, q a prime or 4; x's heavy points are its hyperplane.
const projective = ({ size, order: q, length }) => {
  const points = (t) => (q ** t - 1) / (q - 1);
  const times = (a, b) => (q == 4 ? +"0000012302310312"[4 * a + b] : (a * b) % q);
  const plus = (a, b) => (q == 4 ? a ^ b : (a + b) % q);
  const digits = (n, t) => range(t).map((i) => floor(n / q ** (t - 1 - i)) % q);
  const vector = (index, t) => {
    const free = range(t).filter((f) => index >= points(f)).length - 1;
    return digits(q ** free + index - points(free), t);
  };
  check(
    whole(q, 2, ONE) &&
      whole(length, 2, 24) &&
      size <= points(length) &&
      points(length) <= 2 ** 24 &&
      (q == 4 || range(4096).every((d) => d < 2 || d * d > q || q % d)),
  );
  const heavies = points(length - 1);
  return [
    taking("category", size),
    q ** (length - 1),
    heavies,
    (x, heavy, source) => {
      const inside = vector(below(source, heavies), length - 1);
      const outside = digits(below(source, q ** (length - 1)), length - 1);
      const found = heavy ? inside : outside;
      const point = vector(x, length);
      const place = point.indexOf(1);
      point.splice(place, 1);
      const others = point.reduce((n, a, i) => plus(n, times(a, found[i])), 0);
      found.splice(place, 0, plus(+!heavy, q == 4 ? others : q - others));
      const first = found.find((a) => a);
      const scale = range(q).find((a) => times(a, first) == 1); // the first number other than 0 becomes 1
      const number = found.reduce((n, a) => n * q + times(scale, a), 0);
      const free = range(length).filter((f) => number >= q ** f).length - 1;
      return [number - q ** free + points(free)];
    },
  ];
};

// Sets of `chosen` items for sets of `most` items out of `size` categories and `most` dummies; heavy if they share one.
const privset = ({ size, most, chosen }) => {
  const items = size + most;
  const inputs = comb(items, most);
  check(inputs <= 2 ** 47);
  const light = comb(size, chosen);
  const heavies = comb(items, chosen) - light;
  const ways = [0n];
  for (let j = 1; j < min(most, chosen); j++) ways.push(ways[j - 1] + comb(most, j) * comb(size, chosen - j));
  return [
    taking("selection", num(inputs)),
    light,
    heavies,
    (x, heavy, source) => {
      const [own, others] = [[], []];
      for (let k = items; k--;) {
        const first = comb(k, most - own.length);
        if (own.length < most && first <= x) {
          x -= num(first);
          own.unshift(k);
        } else others.unshift(k);
      }
      const drawn = below(source, heavies);
      const shared = heavy ? ways.filter((n) => drawn >= n).length : 0;
      const mine = shuffled(source, own, min(most, chosen));
      const rest = shuffled(source, others, chosen);
      return sorted([...mine.slice(0, shared), ...rest.slice(0, chosen - shared)]);
    },
  ];
};

const families = { subset, projective, privset };

const heavy_set = ({ epsilon, family, weight }) => {
  const [takes, others, heavies, choose] = families[family.name](family);
  // Too few or too many to be a family: one of the two is 0 or negative, and the proof fails.
  proven(epsilon, big(weight) * big(others), big(ONE - weight) * big(heavies));
  return { takes, drawOutput: (x, source) => choose(x, word(source, 32) < weight, source) };
};

const channelKinds = { table, entries, heavy_set };

// ---- Dimensions: {name, reads, place(value, size)}; a place is an input and a fraction of the way to the next -------

const trim = (text) => text.replace(/^([^\S\ufeff]|\x85)+|([^\S\ufeff]|\x85)+$/g, "");

// The number that a value is or says; NaN if it is none. Text is read as Python's float() reads it: "" and "0x10" are
// no numbers, "1_000" and "inf" are. (Digits of other scripts, which Python reads, are none here.)
const asNumber = (value) => {
  if (typeof value != "string") return typeof value == "object" ? NaN : num(value);
  const said = trim(value).toLowerCase();
  const text = said.replace(/(\d)_(?=\d)/g, "$1").replace(/inf(inity)?$/, "Infinity");
  return /^[+-]?(\d+\.?\d*|\.\d+|Infinity)(e[+-]?\d+)?$/.test(text)
    ? +text
    : said == "true"
      ? 1
      : said == "false"
        ? 0
        : NaN;
};

// Truth values in lower case, integers without zeros after the point, any other text as it is.
const meaning = (text) =>
  text.replace(/^(true|false)$/i, (truth) => truth.toLowerCase()).replace(/^(-?\d+)\.0+$/, "$1");

// The number of the category that a value names: the one that is its text, or the only one of its meaning; else `none`.
const find = (labels, value, none) => {
  const text = typeof value != "object" && whole(abs(value), 0, 2 ** 53) ? "" + value : value;
  if (typeof text != "string") return none;
  const meanings = labels.map(meaning);
  const k = meanings.indexOf(meaning(text));
  const only = k == meanings.lastIndexOf(meaning(text)) && k >= 0 ? k : none;
  return labels.includes(text) ? labels.indexOf(text) : only;
};

const numeric = ({ low, high, optional, default: usual }) => {
  check([low, usual, high, high - low].every(num.isFinite) && low <= usual && usual <= high && low < high);
  return {
    reads: optional ? "optional" : "number",
    place: (value, size) => {
      const number = asNumber(value);
      const levels = size - !!optional;
      const missing = number != number; // NaN
      if (optional && missing) return levels;
      const inside = missing ? usual : min(max(number, low), high);
      const place = ((inside - low) / (high - low)) * ((levels - 1) * FRACTION);
      return (place + 2 ** 52 - 2 ** 52) / FRACTION; // a double of this size is rounded to an integer, half to even
    },
  };
};

const categorical = ({ categories, default: usual }) => {
  const none = categories.indexOf(usual);
  check(none >= 0);
  return {
    reads: "category",
    size: categories.length,
    place: (value) => find(categories, value, none),
  };
};

// A set of categories, filled up with dummies, by its number in the combinatorial number system.
const selection = ({ categories, at_most: most }) => {
  const v = categories.length;
  return {
    reads: "selection",
    size: num(comb(v + most, most)),
    place: (value) => {
      const parts = [typeof value == "string" ? value.split("|").map(trim) : value].flat();
      const found = parts.map((part) => find(categories, part));
      const members = range(v + most)
        .filter((k) => k >= v || found.includes(k))
        .slice(0, most);
      return num(members.reduce((n, member, i) => n + comb(member, i + 1), 0n));
    },
  };
};

const dimensionKinds = { numeric, categorical, selection };

// ---- The survey -----------------------------------------------------------------------------------------------------

// RFC 8785: the one text of a JSON value.
const canonical = (value) =>
  value?.map
    ? `[${value.map(canonical)}]`
    : Object(value) === value
      ? `{${Object.keys(value)
          .sort()
          .map((key) => json(key) + ":" + canonical(value[key]))}}`
      : json(value);

const fingerprint = async (document) => hex(await subtle.digest("SHA-256", utf8(canonical(document))));

// Reads a survey's document (text or object) and proves all that protects the person who answers.
const readSurvey = async (document) => {
  const { fingerprint: claimed, ...body } = JSON.parse(typeof document == "string" ? document : json(document));
  const { format, version, epsilon, n_sampled: m, dimensions, channels, questions: list } = body;
  check(format == "hdr4me-survey" && version === 2);
  check(claimed == (await fingerprint(body)), "fingerprint");
  const asked = dimensions.map((dimension) => dimensionKinds[dimension.type](dimension));
  const [n, d] = exact(epsilon);
  let lasting = 0; // what a permanent answer costs, where that is more than its share of epsilon
  const made = channels.map((channel) => {
    const [a, b] = exact(channel.epsilon);
    check(big(m) * a * d <= n * b);
    lasting = max(lasting, channel.stages?.epsilon ?? 0);
    return channelKinds[channel.kind](channel);
  });
  const questions = list.map(({ dimensions: numbers, channel, weight = 1 }) => {
    const { takes, drawOutput } = made[channel];
    const parts = numbers.map((j, i) => {
      const { reads, size = takes[i].size, place } = asked[j];
      check(reads == takes[i].reads && size == takes[i].size && takes.length == numbers.length);
      return { j, reads, size, place, name: dimensions[j].name };
    });
    return { parts, drawOutput, weight, stages: channels[channel].stages };
  });
  check(whole(m, 1, questions.length));
  return { ...body, fingerprint: claimed, series: await fingerprint({ ...body, name: "" }), m, questions, lasting };
};

// ---- Answers --------------------------------------------------------------------------------------------------------

const drawQuestions = ({ questions, m }, source) => {
  const weights = questions.map(({ weight }) => weight);
  return weights.some((weight) => weight != weights[0])
    ? [pick(weights, below(source, sum(weights)))]
    : several(source, weights.length, m);
};

// The input of a question's channel; `fraction(i, reads)` gives the sixteen bits that round its dimension i.
const inputOf = ({ parts }, record, fraction) =>
  parts.reduce((x, { name, reads, size, place }, i) => {
    let at = place(null, size);
    try {
      at = place(record[name], size);
    } catch {} // a value may be an object that throws anything at all
    return x * size + floor(at) + (fraction(i, reads) < (at % 1) * FRACTION);
  }, 0);

// Fresh answers [[question, field, …], …]: the questions, then for each its fractions and what its channel draws.
const fresh = (survey, record, source) =>
  drawQuestions(survey, source).map((q) => {
    const question = survey.questions[q];
    const x = inputOf(question, record, (_, reads) => (reads == "category" ? 0 : word(source, 16)));
    return [q, ...question.drawOutput(x, source)];
  });

// Permanent answers, and the marks of the rows that must be paid for first; docs/over-time.md has the rules.
const permanent = async (survey, record, key, known, affordable, fresh) => {
  const [answers, marks] = [[], []];
  const secret = (...label) => fixed(key, survey.series, ...label);
  for (const q of await secret(0, 0, 0, (source) => drawQuestions(survey, source))) {
    const question = survey.questions[q];
    const { parts, drawOutput, stages } = question;
    const rows = range(parts.reduce((n, { size }) => n * size, 1));
    const fractions = await Promise.all(parts.map(({ j }) => secret(1, j, 0, (source) => word(source, 16))));
    const own = await Promise.all(rows.map((x) => secret(3, q, x, (source) => hex(source(16)))));
    let row = inputOf(question, record, (i) => fractions[i]);
    const paid = known.map((mark) => own.indexOf(mark)).filter((x) => x >= 0); // in order of payment
    // Once the budget is spent, the row paid for last, whatever the value.
    if (paid.length && marks.length >= affordable) row = paid.at(-1);
    else if (!paid.includes(row)) marks.push(own[row]);
    const lasting = await secret(2, q, row, (source) => drawOutput(row, source, 1));
    answers.push([q, ...lasting.map((k) => (stages ? pick(stages.second[k], word(fresh, 16)) : k))]);
  }
  return [answers, marks];
};

// ---- Storage: ledger, queue and secret in one record of IndexedDB, changed under a Web Lock -------------------------

const settled = (request, done = "onsuccess") =>
  new Promise((resolve, reject) => {
    request[done] = () => resolve(request.result);
    request.onerror = request.onabort = () => reject(request.error);
  });

// update(change): change the state alone, and resolve when it is on the disk; if `change` throws, nothing is written.
// alone(work): run work while no other tab does.
const browserStore = (name = "hdr4me") => ({
  alone: (work) => navigator.locks.request(name + "-send", work),
  update: (change) =>
    navigator.locks.request(name, async () => {
      const opening = indexedDB.open(name, 1); // a newer database refuses
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

// ---- The client -----------------------------------------------------------------------------------------------------

const today = () => floor(Date.now() / 864e5);

class Client {
  #timer;
  #failures = 0;

  static async open(document, options) {
    const survey = await readSurvey(document);
    const { epsilon, m, lasting } = survey;
    const usual = { store: browserStore(), url: "", limit: 16, reports: 1, survey, epsilon, share: m };
    const client = Object.assign(new Client(), usual, options);
    // Permanent answers with a second stage cost what they lose in all reports together.
    if (client.permanent && lasting * m > epsilon) [client.epsilon, client.share] = [lasting, 1];
    client.endpoint = `${client.url}/v1/rounds/${client.round}/reports`;
    addEventListener("online", () => client.flush());
    return client;
  }

  #update(change) {
    return this.store.update((state) => {
      Object.assign(state, { spent: [], own: {}, queue: [], sent: [], ...state });
      return change(state);
    });
  }

  // How many more answers the ledger allows. An answer costs epsilon/share; the ledger keeps integers of answers, so
  // nothing is rounded.
  #left({ spent }) {
    const { series, m } = this.survey;
    const since = this.every ? today() - this.every + 1 : 0;
    let used = 0;
    let [n, d] = exact(this.limit);
    for (const charge of spent)
      if (charge.day >= since) {
        const [a, b] = exact(charge.epsilon);
        const c = b * big(charge.share);
        n = n * c - big(charge.answers) * a * d;
        d *= c;
        if (charge.series == series) used += charge.answers;
      }
    const [a, b] = exact(this.epsilon);
    return min(this.reports * m - used, num((n * b * big(this.share)) / (d * a)));
  }

  // The report, the rows to be remembered and the price in answers. Fresh words are kept until they are sent: who looks
  // twice sees the same report, and nobody can draw until she likes what she sees.
  async #draw(state, record) {
    const { survey } = this;
    const { series, fingerprint, m } = survey;
    const own = (state.own[series] ??= { rows: [], tape: [] });
    const { rows, tape } = own;
    let at = 0;
    const source = (n) => {
      tape.push(...random(max(0, at + n - tape.length)));
      return tape.slice(at, (at += n));
    };
    if (this.permanent)
      state.secret ??= await subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);
    const [answers, marks] = this.permanent
      ? await permanent(survey, record, state.secret, rows, rows.length ? this.#left(state) : m, source)
      : [fresh(survey, record, source)];
    return [{ format: "hdr4me-report", version: 1, survey: fingerprint, answers }, own, marks];
  }

  // The report that answer() would send for this record now. Nothing is spent and nothing leaves.
  preview(record) {
    return this.#update(async (state) => (await this.#draw(state, record))[0]);
  }

  // Pays for a report and puts it into the queue; both are on the disk before anything is sent.
  async answer(record) {
    const item = await this.#update(async (state) => {
      const { epsilon, share, survey } = this;
      if (state.out) stop("OptedOut");
      const [report, own, marks] = await this.#draw(state, record);
      const answers = marks ? marks.length : survey.m;
      if (answers > this.#left(state)) stop("BudgetExceeded");
      if (answers) state.spent.push({ day: today(), series: survey.series, epsilon, share, answers });
      own.rows.push(...(marks ?? []));
      own.tape = [];
      const item = { id: hex(random(16)), url: this.endpoint, report };
      state.queue.push(item);
      return item;
    });
    this.flush();
    return item;
  }

  // Sends what waits, each report with the key that was made with it; what fails is tried again, later and later.
  flush() {
    clearTimeout(this.#timer);
    return this.store.alone(async () => {
      const result = { sent: 0, waiting: 0, refused: [] };
      for (const { id, url, report } of await this.#update(({ queue }) => queue)) {
        if (url != this.endpoint) continue;
        const { ok, status = 0 } = await fetch(url, {
          method: "POST",
          headers: { "Content-Type": "application/json", "Idempotency-Key": id, ...this.headers },
          body: json(report),
          credentials: "omit",
          keepalive: true,
        }).catch(() => 0);
        if (/^[05]|408|429/.test(status)) {
          result.waiting++;
          continue;
        }
        if (ok) result.sent++;
        else result.refused.push({ id, status });
        await this.#update((state) => {
          state.queue = state.queue.filter((item) => item.id != id);
          if (ok) state.sent.push({ id, url });
        });
      }
      this.#failures = result.waiting && this.#failures + 1;
      // From 0 to 2, 4, 8, … seconds, at most 512.
      const jitter = (num(word(random, 32)) / ONE) * 2 ** min(9, this.#failures);
      if (result.waiting) this.#timer = setTimeout(() => this.flush(), jitter * 1e3);
      return result;
    });
  }

  // Out: nothing is sent any more, and what waits is dropped. What was spent stays spent.
  optOut(out = true) {
    return this.#update((state) => {
      state.out = out;
      if (out) state.queue = [];
    });
  }

  // How many more reports the ledger allows, how many wait, the keys of those that went, and whether she is out.
  status() {
    return this.#update((state) => ({
      left: this.#left(state) / this.survey.m,
      waiting: state.queue.length,
      sent: state.sent,
      out: state.out,
    }));
  }
}

export { Client, below, browserStore, fixed, fresh, permanent, readSurvey };
