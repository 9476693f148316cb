// Updates of parts of the page that keep the focus, and tables.
import { make } from "./answer-fields.js";

export { make };
export const at = (id) => document.getElementById(id);
export const p = (text, className = "") => make("p", { className }, text);

const shown = new WeakMap();

/**
 * Replace the content of an element if its key changed. The focus and open details are restored by their ids.
 */
export function fill(place, key, content) {
  const text = JSON.stringify(key);
  if (shown.get(place) === text) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...place.querySelectorAll("details[open]")].map(({ id }) => id).filter(Boolean);
  place.replaceChildren(...content().filter((node) => node !== null));
  shown.set(place, text);
  for (const id of open) if (at(id)) at(id).open = true;
  if (focused) at(focused)?.focus({ preventScroll: true });
}

/** A table in a box that scrolls by itself, so that the page never scrolls sideways. */
export function table(id, caption, columns, rows) {
  const head = make("tr", {}, ...columns.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, k) => (k ? make("td", {}, cell) : make("th", { scope: "row" }, cell)))),
  );
  const title = caption ? make("caption", {}, caption) : "";
  const made = make("table", {}, title, make("thead", {}, head), make("tbody", {}, ...body));
  const box = make("div", { className: "box", id, tabIndex: 0 }, made);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption || columns.join(", "));
  return box;
}

/** Paragraphs with `code` and **strong** words, as text nodes and elements. */
export const words = (text) =>
  text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (/^`.+`$/.test(part)) return make("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return make("strong", {}, part.slice(2, -2));
    return part;
  });
