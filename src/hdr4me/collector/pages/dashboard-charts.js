// Figures, drawn by Observable Plot. Each has a label, and a table with the same numbers.
/* global Plot */

const COLORS = { raw: "var(--raw)", "re-calibrated": "var(--accent)" };

/** A figure without the style element that Plot adds: the policy of the page allows no inline style. */
function picture(label, options) {
  const drawn = Plot.plot({ marginTop: 12, marginRight: 16, ...options });
  for (const style of drawn.querySelectorAll("style")) style.remove();
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", label);
  return drawn;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const shift = (rows) =>
  new Map([...new Set(rows.map(({ kind }) => kind))].map((kind, k, { length }) => [kind, (k - (length - 1) / 2) * 8]));

/** Estimates with intervals, one line each; `rows` have name, kind, x, low, high and text. */
export function intervals(label, rows, { width, domain, ticks, tickFormat, axis }) {
  const names = [...new Set(rows.map(({ name }) => name))];
  const most = width < 420 ? 14 : 24;
  const left = Math.min(170, 14 + 7.2 * Math.max(...names.map((name) => Math.min(most, name.length))));
  const kinds = shift(rows);
  const marks = [...kinds].flatMap(([kind, dy]) => {
    const own = rows.filter((row) => row.kind == kind);
    return [
      Plot.link(own, {
        x1: "low",
        x2: "high",
        y1: "name",
        y2: "name",
        dy,
        stroke: COLORS[kind],
        strokeWidth: 2.5,
        strokeOpacity: 0.65,
      }),
      Plot.dot(own, { x: "x", y: "name", dy, r: 4, fill: COLORS[kind], title: "text" }),
    ];
  });
  const last = rows.filter(({ kind }) => kind == [...kinds.keys()].at(-1));
  return picture(label, {
    width,
    height: 44 + names.length * (kinds.size > 1 ? 32 : 26),
    marginLeft: left,
    marginRight: 16 + 6.6 * Math.max(...rows.map(({ text }) => text.length)),
    marginBottom: 34,
    x: { domain, ticks, tickFormat, label: axis, labelAnchor: "center", labelArrow: "none", grid: true },
    y: { domain: names, label: null, tickSize: 0, tickFormat: (name) => short(name, most) },
    marks: [
      ...marks,
      Plot.text(last, {
        frameAnchor: "right",
        y: "name",
        text: "text",
        textAnchor: "start",
        dx: 8,
        fill: "currentColor",
      }),
    ],
  });
}

/** Points of an ordered group: a line with its band for each kind; `points` have place, name, kind, y, low and high. */
export function curve(label, points, { width, axis }) {
  const kinds = [...new Set(points.map(({ kind }) => kind))];
  const places = [...new Map(points.map(({ place, name }) => [place, name]))];
  const every = Math.ceil(places.length / (width / 48));
  const names = new Map(places);
  return picture(label, {
    width,
    height: width < 420 ? 200 : 240,
    marginLeft: 52,
    marginBottom: 34,
    x: {
      ticks: places.map(([place]) => place).filter((_, k) => k % every == 0),
      tickFormat: (place) => names.get(place) ?? "",
      label: null,
    },
    y: { label: axis, labelAnchor: "top", labelArrow: "none", grid: true, nice: true },
    marks: kinds.flatMap((kind) => {
      const own = points.filter((point) => point.kind == kind);
      return [
        Plot.areaY(own, { x: "place", y1: "low", y2: "high", fill: COLORS[kind], fillOpacity: 0.16 }),
        Plot.lineY(own, { x: "place", y: "y", stroke: COLORS[kind], strokeWidth: 2 }),
        Plot.dot(own, { x: "place", y: "y", r: 2.2, fill: COLORS[kind], title: "text" }),
      ];
    }),
  });
}

/** The number of reports that arrived in each hour, or in each day of a long period. */
export function arrivals(byHour, quarantined, width) {
  const hours = byHour.map(([hour]) => hour);
  const [first, last] = [Math.min(...hours), Math.max(...hours)];
  const step = last - first > 24 * 14 ? 24 : 1;
  const bars = new Map();
  for (const [hour, n] of byHour) {
    const from = Math.floor(hour / step) * step;
    const left = quarantined.has(hour);
    const key = `${from} ${left}`;
    const bar = bars.get(key) ?? { from: from * 3_600_000, to: (from + step) * 3_600_000, n: 0, left };
    bar.n += n;
    bars.set(key, bar);
  }
  const least = Math.max(first - Math.max(0, 12 * step - (last - first)), 0);
  const from = Math.floor(least / step) * step;
  return picture(`Reports by ${step == 1 ? "hour" : "day"}; a table follows`, {
    width,
    height: 180,
    marginLeft: 56,
    x: {
      type: "utc",
      domain: [from * 3_600_000, (Math.floor(last / step) + 1) * step * 3_600_000],
      label: null,
      ticks: Math.max(2, Math.floor(width / 90)),
      ...(last - from <= 48 ? { tickFormat: (time) => time.toISOString().slice(11, 16) } : {}),
    },
    y: { label: null, grid: true, nice: true, ticks: 4 },
    marks: [
      Plot.rectY([...bars.values()], {
        x1: "from",
        x2: "to",
        y: "n",
        insetLeft: 1,
        insetRight: 1,
        fill: ({ left }) => (left ? "var(--raw)" : "var(--accent)"),
        fillOpacity: 0.85,
      }),
      Plot.ruleY([0]),
    ],
  });
}
