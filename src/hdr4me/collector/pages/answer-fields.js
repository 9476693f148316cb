// The form: one control for each dimension of any survey.
import { plain } from "./answer-words.js";

/** An element with properties and children. */
export const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// A step of 1, 2 or 5 times a power of ten, for about a hundred steps.
const stepOf = (low, high) => {
  const rough = (high - low) / 100;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((k) => k * power).find((step) => step >= rough * 0.999);
};

const numeric = (dimension, id) => {
  const { low, high } = dimension;
  const step = stepOf(low, high);
  const number = make("input", {
    id,
    type: "number",
    min: low,
    max: high,
    step: "any",
    inputMode: "decimal",
    placeholder: "–",
  });
  const slider = make("input", { type: "range", min: low, max: high, step, value: (low + high) / 2, tabIndex: -1 });
  slider.setAttribute("aria-hidden", "true"); // the number field has the same value
  slider.addEventListener("input", () => (number.value = slider.value));
  number.addEventListener("input", () => number.value !== "" && (slider.value = number.value));
  const unit = dimension.unit ? ` ${dimension.unit}` : "";
  const note = `${low} to ${high}${unit}${dimension.optional ? "; may be left blank" : ""}`;
  return {
    control: make("div", { className: "number" }, number, slider),
    note,
    value: () => (number.value === "" ? null : Number(number.value)),
    fill: (share) => {
      slider.value = low + share * (high - low);
      number.value = slider.value;
    },
  };
};

const categorical = ({ categories }, id) => {
  const options = categories.map((text, k) => make("option", { value: k, textContent: text }));
  const select = make("select", { id }, make("option", { value: "", textContent: "no answer" }), ...options);
  return {
    control: select,
    note: "",
    value: () => (select.value === "" ? null : categories[Number(select.value)]),
    fill: (share) => (select.value = Math.floor(share * categories.length)),
  };
};

const selection = ({ categories, at_most: most }, id) => {
  const boxes = categories.map((_, k) => make("input", { type: "checkbox", id: `${id}-${k}` }));
  const limit = () => {
    const full = boxes.filter((box) => box.checked).length >= most;
    for (const box of boxes) box.disabled = full && !box.checked;
  };
  const labels = boxes.map((box, k) => make("label", {}, box, ` ${categories[k]}`));
  const group = make("div", { className: "boxes" }, ...labels);
  group.addEventListener("change", limit);
  return {
    control: group,
    note: `up to ${most}`,
    value: () => categories.filter((_, k) => boxes[k].checked),
    fill: (share) => {
      const chosen = 1 + Math.floor(share * most);
      boxes.forEach((box, k) => (box.checked = k < chosen));
      limit();
    },
  };
};

const bucket = ({ edges }, id) => numeric({ low: edges[0], high: edges.at(-1) }, id);

const text = (dimension, id) => {
  const input = make("input", { id, type: "text", autocomplete: "off" });
  return {
    control: input,
    note: "",
    value: () => (input.value.trim() ? input.value : null),
    fill: () => (input.value = partOf(dimension).categories?.[0] ?? "example"),
  };
};

/** The dimension that a prefix cuts a text for; another dimension itself. */
const partOf = (dimension) => dimension.prefix?.[0] ?? dimension;

/** The controls of the types of dimension that read a column. */
const KINDS = { numeric, categorical, selection, bucket, hash: text, prefix: text };

/** Each column with the dimension or part that reads it, and the dimensions that are computed from it. */
const columnsOf = (dimensions) => {
  const columns = new Map();
  for (const dimension of dimensions)
    for (const part of dimension.product ? [] : (dimension.joint ?? dimension.outer ?? [dimension])) {
      const own = partOf(part);
      const name = own.column ?? own.name;
      const found = columns.get(name);
      const first = found?.dimension ?? { ...part, name, default: own.default, optional: own.optional };
      columns.set(name, { dimension: first, used: [...(found?.used ?? []), dimension] });
    }
  for (const dimension of dimensions)
    for (const name of dimension.product ?? []) columns.get(name).used.push(dimension);
  return [...columns.values()];
};

/** Whether every column has a control. */
export const isSupported = ({ dimensions }) => columnsOf(dimensions).every(({ dimension }) => KINDS[dimension.type]);

// The other columns that one random answer represents together with this one.
const together = ({ name }, used) => {
  const parts = used.flatMap(({ joint, outer, product }) => joint ?? outer ?? product?.map((own) => ({ name: own })) ?? []);
  const others = new Set(parts.map((part) => partOf(part).column ?? partOf(part).name));
  others.delete(name);
  return others.size ? `asked together with ${[...others].map(plain).join(", ")}` : "";
};

const field = ({ dimension, used }, j) => {
  const id = `field-${j}`;
  const { control, note: own, value, fill } = KINDS[dimension.type](dimension, id);
  const note = [own, together(dimension, used)].filter(Boolean).join("; ");
  const several = dimension.type == "selection";
  const name = make(several ? "legend" : "label", { textContent: plain(dimension.name) });
  if (!several) name.htmlFor = id;
  const hint = make("span", { className: "range", id: `${id}-note`, textContent: note });
  const mark = make("span", { className: "mark", hidden: true, textContent: "drawn" });
  if (note && control.matches("select, input, div.number"))
    (control.querySelector("input") ?? control).setAttribute("aria-describedby", hint.id);
  const head = several ? name : make("div", { className: "head" }, name, hint, mark);
  if (several) name.append(" ", hint, " ", mark);
  const element = make(several ? "fieldset" : "div", { className: "field" }, head, control);
  return { dimension, used, element, mark, value, fill };
};

/** The fields of a survey; points of one curve are folded together. */
export const fieldsOf = (survey, place) => {
  const fields = columnsOf(survey.dimensions).map(field);
  const curves = new Map();
  for (const one of fields) {
    const { curve } = one.dimension;
    if (!curve) place.append(one.element);
    else curves.set(curve, [...(curves.get(curve) ?? []), one]);
  }
  for (const [curve, points] of curves) {
    const mark = make("span", { className: "mark", hidden: true, textContent: "drawn" });
    const range = make("span", { className: "range", textContent: `${points.length} values` });
    const summary = make("summary", {}, plain(curve), range, mark);
    for (const point of points) point.folded = { mark, points };
    place.append(make("details", { className: "curve" }, summary, ...points.map((point) => point.element)));
  }
  return fields;
};
