// node --test client.test.mjs, where HDR4ME_CLIENT is the path of the module and HDR4ME_SURVEYS a file of survey documents.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { serialize } from "node:v8";

const { Client } = await import(pathToFileURL(process.env.HDR4ME_CLIENT));
const { ages, moods, tenth, staged, wide, strict } = JSON.parse(readFileSync(process.env.HDR4ME_SURVEYS, "utf8"));

// A store in memory that behaves like IndexedDB under Web Locks: one change at a time, and copies of the state.
function memory(events = []) {
  let [kept, last, sending] = [{}, Promise.resolve(), Promise.resolve()];
  const after = (promise, work) => promise.then(work, work);
  return {
    update(change) {
      return (last = after(last, async () => {
        const state = structuredClone(kept);
        const result = await change(state);
        if (this.full) throw new Error("disk full");
        kept = structuredClone(state);
        events.push("stored");
        return structuredClone(result);
      }));
    },
    alone: (work) => (sending = after(sending, work)),
    get state() {
      return kept;
    },
  };
}

// A collector that answers with these statuses in turn, and then with 200; "down" is a network error.
function collector(answers = [], events = []) {
  const seen = [];
  globalThis.fetch = async (url, { method, headers, body, keepalive }) => {
    events.push("sent");
    const status = answers.shift() ?? 200;
    seen.push({ url, method, id: headers["Idempotency-Key"], type: headers["Content-Type"], body, status, keepalive });
    if (status === "down") throw new TypeError("network");
    return new Response(null, { status, headers: status === 503 ? { "Retry-After": "0" } : {} });
  };
  return seen;
}
const fails = (name) => (error) => error.name === name;
const settled = (promises) =>
  Promise.allSettled(promises).then((all) => all.filter((one) => one.status === "fulfilled").length);

test("80 attempts on a budget of 10 give exactly 10", async () => {
  const seen = collector();
  const store = memory();
  const clients = await Promise.all([1, 2].map(() => Client.open(ages, { store, round: 1, reports: 10 })));
  const tries = Array.from({ length: 80 }, (_, i) => clients[i % 2].answer({ age: i }));
  assert.equal(await settled(tries), 10);
  await clients[0].flush();
  assert.equal(new Set(seen.map(({ id }) => id)).size, 10);
  assert.equal((await clients[0].status()).left, 0);
  await assert.rejects(clients[1].answer({ age: 1 }), { name: "BudgetExceeded", message: "budget is spent" });
});

test("the charge is stored before the report is sent, and a full disk sends nothing", async () => {
  const events = [];
  const store = memory(events);
  const seen = collector([], events);
  const client = await Client.open(ages, { store, round: 3, url: "https://example.org", reports: 2 });
  const { id, report } = await client.answer({ age: 31 });
  await client.flush();
  assert.equal(events[0], "stored");
  assert.equal(seen.length, 1);
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.deepEqual(
    { ...seen[0] },
    {
      url: "https://example.org/v1/rounds/3/reports",
      method: "POST",
      id,
      type: "application/json",
      body: JSON.stringify(report),
      status: 200,
      keepalive: true,
    },
  );
  store.full = true;
  await assert.rejects(client.answer({ age: 31 }), /disk full/);
  store.full = false;
  assert.equal((await client.flush()).sent, 0);
  assert.equal(seen.length, 1);
  assert.deepEqual((await client.status()).sent, [{ id, url: seen[0].url, status: 200 }]);
});

test("a failed report is sent again with the same key", async () => {
  const seen = collector(["down", 503, 429, 500]);
  const client = await Client.open(ages, { store: memory(), round: 1, reports: 9 });
  const { id } = await client.answer({ age: 31 });
  while ((await client.status()).waiting) await client.flush();
  assert.deepEqual(
    seen.map((one) => [one.id, one.status]),
    ["down", 503, 429, 500, 200].map((status) => [id, status]),
  );
});

test("answer() rejects if the collector refuses the report, and the refusal is stored", async () => {
  const seen = collector([409, 413]);
  const store = memory();
  const client = await Client.open(ages, { store, round: 1, reports: 9 });
  for (const status of [409, 413])
    await assert.rejects(client.answer({ age: 31 }), { name: "Refused", message: `status ${status}` });
  const { refused, waiting, sent, left } = await client.status();
  assert.deepEqual(
    refused.map(({ id, status }) => [id, status]),
    seen.map(({ id, status }) => [id, status]),
  );
  assert.deepEqual([waiting, sent.length, left], [0, 0, 7]); // the budget stays spent
  const again = await Client.open(ages, { store, round: 1, reports: 9 });
  assert.deepEqual((await again.flush()).refused, refused);
  const { id } = await again.answer({ age: 31 });
  assert.deepEqual((await again.status()).sent.map((one) => one.id), [id]);
});

test("keepalive is used only for reports that a browser accepts with it", async () => {
  const seen = collector();
  const client = await Client.open(wide, { store: memory(), round: 1 });
  const { report } = await client.answer({});
  assert.ok(JSON.stringify(report).length > 65_536);
  assert.deepEqual(
    seen.map(({ keepalive }) => keepalive),
    [false],
  );
});

test("a record with unknown names or unusable values is refused before anything is drawn or charged", async () => {
  const seen = collector();
  const store = memory();
  const client = await Client.open(strict.survey, { store, round: 1, reports: 99, limit: 99 });
  const message = (names) => `unknown or unusable: ${names}`;
  const cases = strict.cases.filter(({ refused }) => refused.length);
  for (const { record, refused } of cases)
    for (const call of ["preview", "answer"])
      await assert.rejects(client[call](record), { name: "InvalidInput", message: message(refused) });
  assert.deepEqual([store.state, seen], [{}, []]);
  for (const { record, refused } of strict.cases) if (!refused.length) await client.answer(record);
  assert.equal(seen.length, strict.cases.length - cases.length);
});

test("an unknown or missing category takes as many comparisons as a known one", async () => {
  const client = await Client.open(moods, { store: memory(), round: 1 });
  const { replace } = String.prototype;
  const counts = [];
  try {
    for (const mood of ["low", "good", "?", 7, null, undefined, {}]) {
      let count = 0;
      String.prototype.replace = function (...rest) {
        count++;
        return replace.apply(this, rest);
      };
      await client.preview({ mood });
      counts.push(count);
    }
  } finally {
    String.prototype.replace = replace;
  }
  assert.equal(new Set(counts).size, 1);
  assert.ok(counts[0] > 6);
});

test("a changed value, an unchanged one and one after the budget is spent write states of the same size", async () => {
  for (const reports of [1, 9]) {
    const sizes = [];
    for (const mood of ["fair", "good"]) {
      collector();
      const store = memory();
      const client = await Client.open(moods, { store, round: 1, memoized: true, reports });
      await client.answer({ mood: "fair" });
      const before = serialize(structuredClone({ ...store.state, secret: 0 })).length;
      await client.answer({ mood });
      sizes.push(serialize({ ...store.state, secret: 0 }).length - before);
    }
    assert.equal(sizes[0], sizes[1]);
  }
});

test("the client retries after random, growing delays", async () => {
  const pauses = [];
  const [before, cleared] = [globalThis.setTimeout, globalThis.clearTimeout];
  globalThis.setTimeout = (_, pause) => pauses.push(pause);
  globalThis.clearTimeout = () => {};
  try {
    collector(Array(40).fill("down"));
    const client = await Client.open(ages, { store: memory(), round: 1 });
    await client.answer({ age: 31 });
    for (let i = 0; i < 30; i++) await client.flush();
  } finally {
    [globalThis.setTimeout, globalThis.clearTimeout] = [before, cleared];
  }
  assert.ok(pauses.length >= 30);
  pauses.forEach((pause, i) => assert.ok(pause >= 0 && pause <= 1000 * 2 ** Math.min(9, i + 1), `${i}: ${pause}`));
  assert.ok(Math.max(...pauses) > 2000); // false alarm: below (1/256)^20
  assert.ok(new Set(pauses).size > 20);
});

test("a preview costs nothing, is the report that will be sent, and cannot be drawn again", async () => {
  collector();
  const store = memory();
  const client = await Client.open(ages, { store, round: 1, reports: 40, limit: 99 });
  const first = await client.preview({ age: 31 });
  for (let i = 0; i < 20; i++) assert.deepEqual(await client.preview({ age: 31 }), first);
  const again = await Client.open(ages, { store, round: 1, reports: 40, limit: 99 }); // a reloaded page
  assert.deepEqual(await again.preview({ age: 31 }), first);
  assert.equal((await client.status()).left, 40);
  assert.deepEqual((await client.answer({ age: 31 })).report, first);
  const more = [];
  for (let i = 0; i < 39; i++) more.push(JSON.stringify((await client.answer({ age: 31 })).report.answers));
  assert.ok(new Set(more).size > 1); // new words each time: a piecewise table of 256 cells, false alarm below 1e-30
});

test("after opting out nothing is sent and waiting reports are dropped", async () => {
  const seen = collector(["down", "down"]);
  const client = await Client.open(ages, { store: memory(), round: 1, reports: 5 });
  await client.answer({ age: 31 });
  await client.flush();
  await client.optOut();
  const before = seen.length;
  await assert.rejects(client.answer({ age: 31 }), fails("OptedOut"));
  assert.deepEqual(await client.flush(), { sent: 0, waiting: 0, refused: [] });
  assert.equal(seen.length, before);
  const { out, waiting, left } = await client.status();
  assert.deepEqual([out, waiting, left], [true, 0, 4]);
  await client.optOut(false);
  await client.answer({ age: 31 });
});

test("memoized responses: an unchanged record is free, a new row costs, a spent budget repeats the last row", async () => {
  collector();
  const store = memory();
  const client = await Client.open(moods, { store, round: 1, memoized: true, reports: 2 });
  const text = async (mood) => JSON.stringify((await client.answer({ mood })).report);
  const fair = await text("fair");
  for (let day = 0; day < 30; day++) assert.equal(await text("fair"), fair);
  assert.equal((await client.status()).left, 1);
  assert.deepEqual(await client.preview({ mood: "fair" }), JSON.parse(fair));
  const good = await text("good");
  assert.equal((await client.status()).left, 0);
  for (const mood of ["fair", "low", "good"]) assert.equal(await text(mood), good); // whatever the value
  assert.equal(store.state.spent.length, 2);
  assert.deepEqual(await client.preview({ mood: "fair" }), JSON.parse(good));
  const poor = await Client.open(moods, { store: memory(), round: 1, memoized: true, limit: 0.5 });
  await assert.rejects(poor.answer({ mood: "fair" }), fails("BudgetExceeded"));
  assert.equal(store.state.secret.extractable, false);
});

test("two stages: reports of an unchanged record differ, and cost the memoized epsilon once", async () => {
  collector();
  const store = memory();
  const client = await Client.open(staged, { store, round: 1, memoized: true, reports: 1 });
  const shown = await client.preview({ mood: "fair" });
  for (let i = 0; i < 5; i++) assert.deepEqual(await client.preview({ mood: "fair" }), shown);
  const reports = [];
  for (let day = 0; day < 60; day++) reports.push(JSON.stringify((await client.answer({ mood: "fair" })).report));
  assert.equal(reports[0], JSON.stringify(shown));
  assert.ok(new Set(reports).size > 1); // false alarm: below 1e-20, three coins of at least 1 : 4 each day
  assert.deepEqual(
    store.state.spent.map(({ epsilon, share, answers }) => (epsilon * answers) / share),
    [3],
  );
  const poor = await Client.open(staged, { store: memory(), round: 1, memoized: true, limit: 2.9 });
  await assert.rejects(poor.answer({ mood: "fair" }), fails("BudgetExceeded"));
  const once = await Client.open(staged, { store: memory(), round: 1, limit: 1 }); // one fresh report costs ε = 1
  await once.answer({ mood: "fair" });
});

test("the limit over all surveys is exact: ten times the double 0.1 is more than 1", async () => {
  collector();
  const client = await Client.open(tenth, { store: memory(), round: 1, reports: 99, limit: 1 });
  assert.equal(await settled(Array.from({ length: 20 }, () => client.answer({ age: 1 }))), 9);
  const store = memory();
  const [one, other] = await Promise.all(
    [ages, moods].map((survey) => Client.open(survey, { store, round: 1, reports: 9, limit: 3 })),
  );
  assert.equal(await settled([one, other, one, other, one].map((client) => client.answer({}))), 3);
});

test("with a period the budget renews, and a clock that is set back renews nothing", async () => {
  collector();
  const now = Date.now;
  const client = await Client.open(ages, { store: memory(), round: 1, every: 7 });
  try {
    const day = (n) => (Date.now = () => (20000 + n) * 864e5 + 5);
    const tried = [];
    for (const n of [0, 6, 7, 3, 13, 14]) {
      day(n);
      tried.push(
        await client.answer({ age: 1 }).then(
          () => n,
          () => -1,
        ),
      );
    }
    assert.deepEqual(tried, [0, -1, 7, -1, -1, 14]);
  } finally {
    Date.now = now;
  }
});
