// The collector's interface: every request has the token, and errors show the collector's message.

const KEPT = "hdr4me-session";

/** A request that was refused, with its status. */
export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export const token = () => sessionStorage.getItem(KEPT);
export const keep = (text) => sessionStorage.setItem(KEPT, text);
export const forget = () => sessionStorage.removeItem(KEPT);

async function send(url, options = {}) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  let answer;
  try {
    answer = await fetch(url, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch {
    throw new Refused(0, "The collector does not respond. This page will try again automatically.");
  }
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({ error: `the collector answered ${answer.status}` }));
  throw new Refused(answer.status, `${error[0].toUpperCase()}${error.slice(1)}.`);
}

export const get = async (url) => (await send(url)).json();
export const post = async (url, body) =>
  (await send(url, { method: "POST", body: body === undefined ? undefined : JSON.stringify(body) })).json();

/** Save the answer of a request as a file. */
export async function download(url, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await (await send(url)).blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Open a session with the link's key, which works once, and remove the key from the address. */
export async function openSession() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return;
  history.replaceState(null, "", location.pathname + location.search);
  forget();
  keep((await post("/v1/session", { key })).token);
}
