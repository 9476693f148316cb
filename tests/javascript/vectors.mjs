// node vectors.mjs MODULE [STEP]: runs every STEP-th shared test vector through the module and prints the number of checked vectors.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { pathToFileURL } from "node:url";

const step = Number(process.argv[3] ?? 1);
const client = await import(pathToFileURL(process.argv[2]));
const folder = new URL("../vectors/", import.meta.url);
const keyOf = (secret) =>
  crypto.subtle.importKey("raw", Buffer.from(secret, "hex"), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const same = (found, wanted, what) => {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: found ${a}, expected ${b}`);
};

// Bytes as a source: those given, or the stream of docs/over-time.md for a secret and a series of zeros, use 2 and a.
function given(words) {
  let [bytes, at, block] = [Buffer.from(typeof words == "number" ? [] : words), 0, 0];
  return (n) => {
    while (typeof words == "number" && bytes.length < at + n) {
      const label = Buffer.alloc(63);
      label.write("hdr4me-permanent-1");
      label[50] = 2;
      label.writeUInt32BE(words, 51);
      label.writeUInt32BE(block++, 59);
      bytes = Buffer.concat([bytes, createHmac("sha256", Buffer.alloc(32)).update(label).digest()]);
    }
    return bytes.subarray(at, (at += n));
  };
}

async function fresh({ surveys, series, cases }, step) {
  const asked = [];
  for (const [i, document] of surveys.entries()) {
    asked.push(await client.readSurvey(document));
    same([asked[i].fingerprint, asked[i].series], [document.fingerprint, series[i]], `fingerprint of survey ${i}`);
  }
  const number = { nan: NaN, inf: Infinity, "-inf": -Infinity, "-0.0": -0 };
  let checked = 0;
  for (let i = 0; i < cases.length; i += step) {
    const [survey, values, words, answers] = cases[i];
    const record = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, value?.number ? number[value.number] : value]),
    );
    const source = given(typeof words == "string" ? Buffer.from(words, "hex") : words);
    same(
      await client.fresh(asked[survey], record, source),
      answers,
      `survey ${survey}, record ${JSON.stringify(values)}, words ${words}`,
    );
    checked++;
  }
  return { surveys: surveys.length, cases: checked };
}

async function memoized() {
  const vectors = JSON.parse(readFileSync(new URL("memoized.json", folder), "utf8"));
  const hex = (bytes) => Buffer.from(bytes).toString("hex");
  for (const [secret, series, use, a, b, bytes] of vectors.streams)
    same(hex(await client.fixed(await keyOf(secret), series, use, a, b, (source) => source(40))), bytes, "stream");
  for (const [secret, series, bounds, numbers] of vectors.draws) {
    const work = (source) => bounds.map((bound) => Number(client.below(source, bound)));
    same(await client.fixed(await keyOf(secret), series, 2, 0, 0, work), numbers, "draws");
  }
  for (const [secret, mark] of vectors.secret_marks)
    same(
      hex(await client.fixed(await keyOf(secret), "00".repeat(32), 4, 0, 0, (source) => source(16))),
      mark,
      "secret",
    );
  const asked = await Promise.all(vectors.surveys.map(client.readSurvey));
  for (const { survey, secret, record, known, affordable, answers, new: marks } of vectors.reports.filter(
    (_, i) => i % step == 0,
  ))
    same(
      await client.memoized(asked[survey], record, await keyOf(secret), known, affordable),
      [answers, marks],
      "memoized responses",
    );
  for (const { survey, secret, record, fresh, answers, new: marks } of vectors.two_stages) {
    const words = given(Buffer.concat(fresh.map((word) => Buffer.from([word >> 8, word & 255]))));
    same(
      await client.memoized(asked[survey], record, await keyOf(secret), [], 9, words),
      [answers, marks],
      "two stages",
    );
  }
  let histories = 0;
  for (const { survey, secret, names, budget, cases } of vectors.histories) {
    const [read, key, m] = [await client.readSurvey(survey), await keyOf(secret), names.length];
    for (const [values, codes, paid] of cases.filter((_, i) => i % step == 0)) {
      const [known, found] = [[], ["", ""]];
      for (let t = 0; t < 3; t++) {
        const record = Object.fromEntries(names.map((name, i) => [name, values[t * m + i]]));
        const [answers, marks] = await client.memoized(read, record, key, known, budget - known.length);
        found[0] += answers.map(([, code]) => code).join("");
        found[1] += marks.length;
        known.push(...marks);
      }
      same(found, [codes, paid], `history ${values}, budget ${budget}`);
      histories++;
    }
  }
  return (
    histories +
    vectors.streams.length +
    vectors.draws.length +
    vectors.secret_marks.length +
    vectors.two_stages.length +
    Math.ceil(vectors.reports.length / step)
  );
}

const plain = JSON.parse(gunzipSync(readFileSync(new URL("client.json.gz", folder))));
const derived = JSON.parse(readFileSync(new URL("derived.json", folder), "utf8"));
console.log(
  JSON.stringify({ fresh: await fresh(plain, step), derived: await fresh(derived, step), memoized: await memoized() }),
);
