// The answer page: it displays what the browser client does.
import { Client } from "/client/hdr4me.js";
import { fieldsOf, isSupported, make } from "./answer-fields.js";
import { budget, maximumPosterior, meaning, odds, percent, plain, questionsOf } from "./answer-words.js";

const at = (id) => document.getElementById(id);
const json = async (url) => {
  const answer = await fetch(url);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
};

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = false;
  at("intro").hidden = true;
}

async function findRound() {
  const wanted = Number(new URLSearchParams(location.search).get("round"));
  const { rounds } = await json("/v1/rounds");
  const open = rounds.filter(({ state, round }) => state == "open" && (!wanted || round == wanted));
  if (!open.length) throw new Error("No round is open, so there is nothing to answer.");
  return open.at(-1);
}

async function begin() {
  const { round, survey: fingerprint } = await findRound();
  const given = await json(`/v1/surveys/${fingerprint}`);
  const client = await Client.open(given, { round }).catch((error) => {
    const known = error.name == "FormatError";
    throw new Error(
      known
        ? `The privacy proof of this survey failed (${error.message}), so it cannot be answered here.`
        : "This page does not support all questions of this survey, so it cannot be answered here.",
    );
  });
  if (client.survey.fingerprint != fingerprint) throw new Error("The survey does not have the fingerprint that the collector announced, so it cannot be answered here.");
  if (!isSupported(given))
    throw new Error("This page does not support all questions of this survey, so it cannot be answered here.");
  show(client, given);
}

function show(client, given) {
  const { survey } = client;
  const questions = questionsOf(given);
  const fields = fieldsOf(survey, at("fields"));
  const record = () => Object.fromEntries(fields.map(({ dimension, value }) => [dimension.name, value()]));
  const asked = questions.length;
  const blank = ({ value }) => value() === null || value().length === 0;
  const required = ({ dimension }) =>
    dimension.type != "selection" && !dimension.optional && dimension.default === undefined;

  document.title = at("title").textContent = survey.name
    ? `Answer privately: ${plain(survey.name)}`
    : "Answer privately";
  at("intro").textContent =
    `This browser draws ${survey.m} of ${asked} questions at random, randomizes your answers, and sends only the result. ` +
    "Nobody else sees what you type, not even the collector.";
  const posterior = maximumPosterior(survey.epsilon);
  at("odds").textContent = odds(survey.epsilon);
  at("after").value = 100 * posterior;
  at("after").textContent = at("after-text").textContent = percent(posterior);
  proof(survey, questions);

  let last; // the report that was sent while this page was open
  let turn = 0;

  async function refresh() {
    const mine = ++turn;
    const status = await client.status();
    const done = status.out || status.left < 1;
    const needed = fields.filter((field) => required(field) && blank(field));
    const report = done ? last : needed.length ? undefined : await client.preview(record());
    if (mine != turn) return; // a later change supersedes this one
    const empty = fields.every(blank);
    showReport(report, done);
    showStatus(status, done || empty || needed.length > 0);
    at("needed").hidden = done || !(empty || needed.length);
    at("needed").textContent = needed.length
      ? `To send a report, first answer: ${needed.map(({ dimension }) => plain(dimension.name)).join(", ")}.`
      : "Fill in at least one answer before you send a report.";
  }

  function showReport(report, done) {
    at("report-title").textContent =
      done && report
        ? "What left this browser"
        : done
          ? "Nothing leaves this browser"
          : "What would leave this browser";
    at("preview").hidden = at("drawn").hidden = at("meanings").hidden = at("preview-note").hidden = !report;
    at("preview-note").textContent = done
      ? "This was the complete report."
      : "This is the complete report. Its noise is drawn once: showing it again does not change it.";
    const drawn = new Set((report?.answers ?? []).flatMap(([q]) => questions[q].dimensions.map(({ name }) => name)));
    for (const { used, mark } of fields) mark.hidden = !used.some(({ name }) => drawn.has(name));
    for (const { folded } of fields) if (folded) folded.mark.hidden = folded.points.every(({ mark }) => mark.hidden);
    if (!report) return;
    at("preview").textContent = JSON.stringify(report, null, 1).replace(
      /\[\s+([\d,\s]+?)\s+\]/g,
      (_, numbers) => `[${numbers.replace(/\s+/g, " ")}]`,
    );
    at("drawn").textContent =
      `Questions drawn at random for this report, whatever your answers are: ${[...drawn].map(plain).join(", ")}.`;
    at("meanings").replaceChildren(
      ...report.answers.map(([q, ...numbers]) => {
        const name = questions[q].dimensions.map((dimension) => plain(dimension.name)).join(" and ");
        return make("li", {}, make("strong", { textContent: `${name}: ` }), meaning(questions[q], numbers));
      }),
    );
  }

  function showStatus(status, done) {
    at("budget").textContent = budget(status, survey.epsilon);
    at("send").disabled = done;
    at("out").textContent = status.out ? "Opt in again" : "Opt out";
    at("out").setAttribute("aria-pressed", String(!!status.out));
    at("past").hidden = !status.sent.length && !status.refused.length;
    at("sent").replaceChildren(
      ...status.sent.map(({ id, url }) => pastReport(id, url)),
      ...status.refused.map((item) =>
        make("li", {}, "Report ", make("code", { textContent: item.id }), `: the collector refused it (${item.status}).`),
      ),
    );
  }

  // The id of a report permits its deletion. Its privacy budget remains spent, because the report was sent.
  function pastReport(id, url) {
    const button = make("button", { type: "button", textContent: "Delete at the collector" });
    const text = make("code", { textContent: id });
    button.addEventListener("click", async () => {
      const body = JSON.stringify({ id });
      const { status } = await fetch(url, { method: "DELETE", body, credentials: "omit" });
      button.disabled = status == 204 || status == 404;
      say(
        status == 204 ? "Deleted." : status == 404 ? "The collector has no such report." : "It could not be deleted.",
      );
    });
    return make("li", {}, "Report ", text, " ", button);
  }

  const say = (text) => (at("state").textContent = text);

  let typing;
  at("questions").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(refresh, 120);
  });
  at("questions").addEventListener("submit", (event) => event.preventDefault());
  at("example").addEventListener("click", () => {
    for (const { fill } of fields) fill(crypto.getRandomValues(new Uint32Array(1))[0] / 2 ** 32);
    refresh();
  });
  at("send").addEventListener("click", async () => {
    at("send").disabled = true;
    try {
      say("Sending …");
      const { id, report } = await client.answer(record());
      last = report;
      const { sent } = await client.status();
      say(
        sent.some((item) => item.id == id)
          ? "Delivered."
          : "No connection: the report is stored in this browser and will be sent automatically.",
      );
    } catch (error) {
      say(
        error.name == "Refused"
          ? `The collector refused the report (${error.message}). The report is deleted; its privacy budget remains spent.`
          : `Not sent: ${error.message}.`,
      );
    }
    await refresh();
  });
  at("out").addEventListener("click", async () => {
    const { out } = await client.status();
    await client.optOut(!out);
    say(out ? "You have opted in again." : "You have opted out: nothing more is sent, and waiting reports were deleted.");
    await refresh();
  });
  addEventListener("online", () => client.flush().then(refresh));

  at("main").hidden = false;
  refresh()
    .then(() => client.flush())
    .then(refresh);
}

function proof(survey, questions) {
  const kinds = new Set(questions.map(({ channel }) => channel.mechanism));
  const rows = {
    "likelihood ratio of a report": `at most e^${survey.epsilon}, verified in this browser in exact integer arithmetic`,
    "questions per report": `${survey.m} of ${questions.length}`,
    noise: [...kinds].map(plain).join(", "),
    randomness: "this browser's (WebCrypto)",
    "fingerprint of the survey": survey.fingerprint,
  };
  for (const [name, text] of Object.entries(rows))
    at("proof").append(make("dt", { textContent: name }), make("dd", { textContent: text }));
}

begin().catch((error) => problem(error.message));
