// node vectors.mjs MODULE: runs the shared test vectors through the module and prints what was checked.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { pathToFileURL } from "node:url";

const client = await import(pathToFileURL(process.argv[2]));
const folder = new URL("../vectors/", import.meta.url);
const keyOf = (secret) =>
  crypto.subtle.importKey("raw", Buffer.from(secret, "hex"), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
const same = (found, wanted, what) => {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what}: ${a} where ${b} is meant`);
};

async function fresh() {
  const { surveys, series, cases } = JSON.parse(gunzipSync(readFileSync(new URL("client.json.gz", folder))));
  const asked = [];
  for (const [i, document] of surveys.entries()) {
    asked.push(await client.readSurvey(document));
    same([asked[i].fingerprint, asked[i].series], [document.fingerprint, series[i]], `fingerprint of survey ${i}`);
  }
  const key = await keyOf("00".repeat(32));
  const number = { nan: NaN, inf: Infinity, "-inf": -Infinity, "-0.0": -0 };
  for (const [survey, told, words, answers] of cases) {
    const record = Object.fromEntries(
      Object.entries(told).map(([name, value]) => [name, value?.number ? number[value.number] : value]),
    );
    let at = 0;
    const given = (n) => Buffer.from(words, "hex").subarray(at, (at += n));
    const work = (source) => client.fresh(asked[survey], record, source);
    same(
      typeof words == "string" ? work(given) : await client.fixed(key, "00".repeat(32), 2, words, 0, work),
      answers,
      `survey ${survey}, record ${JSON.stringify(told)}, words ${words}`,
    );
  }
  return { surveys: surveys.length, cases: cases.length };
}

async function permanent() {
  const vectors = JSON.parse(readFileSync(new URL("permanent.json", folder), "utf8"));
  const hex = (bytes) => Buffer.from(bytes).toString("hex");
  for (const [secret, series, use, a, b, bytes] of vectors.streams)
    same(hex(await client.fixed(await keyOf(secret), series, use, a, b, (source) => source(40))), bytes, "stream");
  for (const [secret, series, bounds, numbers] of vectors.draws) {
    const work = (source) => bounds.map((bound) => Number(client.below(source, bound)));
    same(await client.fixed(await keyOf(secret), series, 2, 0, 0, work), numbers, "draws");
  }
  for (const [secret, mark] of vectors.secret_marks)
    same(hex(await client.fixed(await keyOf(secret), "00".repeat(32), 4, 0, 0, (source) => source(16))), mark, "secret");
  const asked = await Promise.all(vectors.surveys.map(client.readSurvey));
  for (const { survey, secret, record, known, affordable, answers, new: marks } of vectors.reports)
    same(
      await client.permanent(asked[survey], record, await keyOf(secret), known, affordable),
      [answers, marks], "permanent answers",
    );
  return vectors.streams.length + vectors.draws.length + vectors.secret_marks.length + vectors.reports.length;
}

console.log(JSON.stringify({ fresh: await fresh(), permanent: await permanent() }));
