// The dashboard: the chosen round and its panels, updated every 30 seconds.
import { readSurvey } from "/client/hdr4me.js";
import { plain } from "./answer-words.js";
import { heading, numbers, pictures } from "./dashboard-answers.js";
import { Refused, download, forget, get, keep, openSession, post, token } from "./dashboard-data.js";
import { at, fill, p } from "./dashboard-dom.js";
import * as panels from "./dashboard-panels.js";
import { missing } from "./dashboard-words.js";

const EVERY = 30_000;
const surveys = new Map(); // by fingerprint: the document, and the result of this browser's own proof
let scope = "read";
let last = null; // the displayed data, to redraw them at another width
let turn = 0;
let timer;

const say = (text) => (at("said").textContent = text);
const width = (place) => Math.max(200, Math.floor(place.clientWidth));

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
}

async function surveyOf(fingerprint) {
  if (!surveys.has(fingerprint)) {
    const document = await get(`/v1/surveys/${fingerprint}`);
    const proof = await readSurvey(document).then(
      () => "verified by this browser in exact integer arithmetic",
      (error) =>
        error.name == "FormatError"
          ? `failed in this browser (${error.message}): do not use this survey`
          : "not verified: the browser client does not support all channels of this survey; use hdr4me audit",
    );
    surveys.set(fingerprint, { document, proof });
  }
  return surveys.get(fingerprint);
}

function listRounds(rounds) {
  const series = new Map();
  for (const round of rounds) series.set(round.series, [...(series.get(round.series) ?? []), round]);
  const several = [...series].filter(([, own]) => own.length > 1);
  panels.options(at("choice"), [
    ...rounds.map(({ round, state }) => [`round ${round}`, `Round ${round} (${state})`]).reverse(),
    ...several.map(([name, own]) => [`series ${name}`, `Rounds ${own.map(({ round }) => round).join(", ")} combined`]),
  ]);
}

// The URL of an estimate with the chosen options.
function asked(base, recalibrate) {
  const query = new URLSearchParams();
  if (recalibrate) query.set("recalibrate", "auto");
  if (at("without").checked && !at("without-label").hidden) query.set("without", "quarantine");
  if (base.startsWith("/v1/series/")) query.set("noise", at("fresh").checked ? "fresh" : "memoized");
  return query.size ? `${base}?${query}` : base;
}

async function documents(base) {
  const found = { raw: await get(asked(`${base}/estimate`)) };
  if (at("recalibrated").checked && !at("recalibrated").disabled)
    found["re-calibrated"] = await get(asked(`${base}/estimate`, true));
  return found;
}

function showAnswers() {
  const { survey, found, sentence, together } = last;
  at("answers-numbers").hidden = !found;
  const wide = width(at("answers-body"));
  fill(at("answers-body"), [found, sentence, wide], () => {
    if (!found) return [p(sentence, "missing")];
    const shown = document.createElement("div");
    shown.className = "pictures";
    shown.append(...pictures(survey, found, wide));
    return [...heading(found, { together, without: at("without").checked && !at("without-label").hidden }), shown];
  });
  fill(at("answers-table"), found, () => (found ? [numbers(found)] : []));
}

// Estimates, or the reason why there are none.
async function answered(base, status) {
  if (status?.shown_at === null) return { sentence: missing(status) };
  try {
    return { found: await documents(base) };
  } catch (error) {
    if (error instanceof Refused && [400, 409].includes(error.status)) return { sentence: error.message };
    throw error;
  }
}

async function load() {
  const mine = ++turn;
  const { rounds, scope: may } = await get("/v1/rounds");
  if (mine != turn) return;
  if (may == "send") throw new Refused(403, "The scope of this token is send. The dashboard needs the scope read or admin.");
  scope = may ?? "read";
  at("enter").hidden = true;
  at("main").hidden = false;
  const first = !at("choice").options.length;
  listRounds(rounds);
  const wanted = new URLSearchParams(location.search).get("round");
  if (first && rounds.some(({ round }) => round == wanted)) at("choice").value = `round ${wanted}`;
  const [kind, name] = at("choice").value.split(" ");
  const together = kind == "series";
  const own = rounds.filter(({ round, series }) => (together ? series == name : round == name));
  if (!own.length) throw new Refused(404, "The collector has no such round.");
  const { document: survey, proof } = await surveyOf(own.at(-1).survey);
  const base = together ? `/v1/series/${name}` : `/v1/rounds/${name}`;
  const status = together ? null : await get(`${base}/status`);
  if (mine != turn) return;
  const title = survey.name ? plain(survey.name) : `Survey ${survey.fingerprint.slice(0, 12)}`;
  document.title = `${title} – collector`;
  at("title").textContent = title;
  for (const id of ["progress", "alarms", "arrivals", "quarantine", "poisoning", "export"]) at(id).hidden = together;
  at("fresh-label").hidden = !together;
  at("recalibrated").disabled = together && !at("fresh").checked; // averages of memoized responses are not re-calibrated
  at("without-label").hidden = together || !status.quarantines.length;
  const admin = scope == "admin";
  at("close").hidden = !(admin && status?.state == "open");
  at("export-parquet").hidden = !(admin && status && status.state != "finalized");
  if (together) panels.showRounds(own);
  else {
    panels.showState(status);
    panels.showProgress(status);
    panels.showAlarms(status);
    panels.showQuarantine(status, admin ? quarantine : null);
    panels.showBounds(status, survey);
    panels.showArrivals(status, width(at("arrivals-body")));
  }
  panels.showSurvey(survey, { round: own.at(-1).round, proof });
  const shown = await answered(base, status);
  if (mine != turn) return;
  last = { survey, status, base, together, ...shown };
  at("export-csv").disabled = at("export-tally").disabled = !shown.found;
  showAnswers();
  if (at("explanation").open) await explain();
  at("updated").textContent =
    `Updated at ${new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}; updates every 30 seconds.`;
  problem("");
}

async function explain() {
  if (last) panels.showExplanation(await get(`/v1/surveys/${last.survey.fingerprint}/explanation`));
}

function ask(sentence) {
  at("main").hidden = true;
  at("enter").hidden = false;
  problem(sentence);
}

async function refresh() {
  clearTimeout(timer);
  if (!token()) return ask("");
  try {
    await load();
  } catch (error) {
    if (error.status == 401 || (error.status == 403 && at("main").hidden)) {
      forget();
      return ask(error.message);
    }
    problem(error.message);
  }
  timer = setTimeout(() => document.hidden || refresh(), EVERY);
}

// Run an action and show its message.
const doing = (work) => async (event) => {
  event?.preventDefault();
  try {
    const text = await work(event);
    if (text) say(text);
  } catch (error) {
    say(error.message);
  }
  await refresh();
};

const quarantine = (what, on) =>
  doing(async () => {
    const { hour, source } = what;
    const body = Object.fromEntries(
      Object.entries({ hour, source }).filter(([, value]) => value !== null && value !== undefined),
    );
    await post(`${last.base}/quarantine`, { ...body, on });
    return on ? "The reports are quarantined." : "The reports are included again.";
  })();

at("leave-out").addEventListener("submit", (event) => {
  event.preventDefault();
  const [what, value] = at("leave-out-what").value.split(" ");
  if (what) quarantine({ [what]: Number(value) }, true);
});
at("close").addEventListener(
  "click",
  doing(async () => {
    if (!confirm("Close this round? It will accept no more reports and cannot be reopened.")) return "";
    await post(`${last.base}/close`);
    return "The round is closed.";
  }),
);
const save = (id, path, name) =>
  at(id).addEventListener(
    "click",
    doing(async () => {
      const file = name(last.status.round);
      await download(asked(`${last.base}/${path}`, path == "estimate.csv" && at("recalibrated").checked), file);
      return `Saved ${file}.`;
    }),
  );
save("export-csv", "estimate.csv", (n) => `round-${n}.csv`);
save("export-tally", "tally", (n) => `round-${n}.tally`);
save("export-parquet", "reports.parquet", (n) => `round-${n}.parquet`);
at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  keep(at("token").value.trim());
  at("token").value = "";
  refresh();
});
for (const id of ["choice", "recalibrated", "without", "fresh"]) at(id).addEventListener("change", refresh);
at("explanation").addEventListener(
  "toggle",
  () => at("explanation").open && explain().catch((error) => say(error.message)),
);
document.addEventListener("visibilitychange", () => document.hidden || refresh());

let resizing;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    if (!last || at("main").hidden) return;
    if (last.status) panels.showArrivals(last.status, width(at("arrivals-body")));
    showAnswers();
  }, 150);
});

openSession()
  .catch((error) => problem(error.message))
  .then(async () => {
    const said = at("problem").textContent;
    await refresh();
    if (said && !token()) problem(said);
  });
