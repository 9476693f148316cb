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
    const draw =
      typeof words == "number"
        ? client.stream(key, "00".repeat(32), 2, words)
        : (n) => Buffer.from(words, "hex").subarray(at, (at += n));
    same(
      await client.freshAnswers(asked[survey], record, draw), answers,
      `survey ${survey}, record ${JSON.stringify(told)}, words ${words}`,
    );
  }
  return { surveys: surveys.length, cases: cases.length };
}

async function permanent() {
  const vectors = JSON.parse(readFileSync(new URL("permanent.json", folder), "utf8"));
  const hex = (bytes) => Buffer.from(bytes).toString("hex");
  for (const [secret, series, use, a, b, bytes] of vectors.streams)
    same(hex(await client.stream(await keyOf(secret), series, use, a, b)(40)), bytes, "stream");
  for (const [secret, series, bounds, numbers] of vectors.draws) {
    const draw = client.stream(await keyOf(secret), series, 2);
    const found = [];
    for (const bound of bounds) found.push(Number(await client.below(draw, bound)));
    same(found, numbers, "draws");
  }
  for (const [secret, mark] of vectors.secret_marks)
    same(hex(await client.stream(await keyOf(secret), "00".repeat(32), 4)(16)), mark, "mark of a secret");
  const asked = await Promise.all(vectors.surveys.map(client.readSurvey));
  for (const { survey, secret, record, known, affordable, answers, new: marks } of vectors.reports)
    same(
      await client.permanentAnswers(asked[survey], record, await keyOf(secret), known, affordable),
      [answers, marks], "permanent answers",
    );
  return vectors.streams.length + vectors.draws.length + vectors.secret_marks.length + vectors.reports.length;
}

console.log(JSON.stringify({ fresh: await fresh(), permanent: await permanent() }));
