// The measured kernels under their roofs: hover names one, wheel and drag zoom, the rounds are played in order.
import { button, enable, make, tell } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [860, 430, 64, 150, 14, 44];
const STEP_MS = 900;
const ZOOM = 1.2;
const HINT = "Point at a kernel for its counters. Dragging moves the chart; after a click the wheel zooms.";
const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** The chart with its buttons; `state` keeps zoom and step while the page stands. */
export function rooflineChart(chart, state) {
  const whole = { x: chart.x.map(Math.log10), y: chart.y.map(Math.log10) };
  const count = chart.points.length;
  if (state.count !== count) Object.assign(state, { count, shown: count });
  state.at ??= structuredClone(whole);
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "cgn-chart", role: "group", "aria-label": "Roofline of the measured kernels" });
  const told = make("p", { class: "cgn-muted cgn-chart-told", role: "status", textContent: HINT });
  const back = button("‹", () => step(-1), { kind: "cgn-small" });
  const on = button("›", () => step(1), { kind: "cgn-small" });
  const play = button("Play", () => (playing ? pause() : start()), { kind: "cgn-small" });
  const reset = button("Whole chart", () => zoomTo(structuredClone(whole)), { kind: "cgn-small" });
  const place = make("span", { class: "cgn-chart-place" });
  back.setAttribute("aria-label", "Earlier kernel");
  on.setAttribute("aria-label", "Later kernel");
  const tools = make("div", { class: "cgn-tools", role: "group", "aria-label": "Kernels in order" }, back, place, on, play, reset);
  const element = make("div", { class: "cgn-chart-box" }, tools, svg, told);
  let playing = 0;
  let dragged = null;
  let isZoomed = false; // until then the wheel scrolls the page

  const across = (x) => LEFT + ((Math.log10(x) - state.at.x[0]) / (state.at.x[1] - state.at.x[0])) * (WIDTH - LEFT - RIGHT);
  const down = (y) => HEIGHT - BOTTOM - ((Math.log10(y) - state.at.y[0]) / (state.at.y[1] - state.at.y[0])) * (HEIGHT - TOP - BOTTOM);

  function update() {
    const inside = draw("g", { "clip-path": "url(#cgn-chart-clip)" });
    const clip = draw("clipPath", { id: "cgn-chart-clip" });
    const area = { x: LEFT, y: TOP, width: WIDTH - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
    clip.append(draw("rect", area));
    inside.append(...roofs(), ...problem(), ...path(), ...points(), ...labels());
    svg.replaceChildren(clip, draw("rect", { ...area, class: "cgn-chart-back" }), ...axes(), inside, ...ends());
    tell(place, `${state.shown} of ${count} ${count === 1 ? "kernel" : "kernels"}`);
    enable(back, state.shown > 1);
    enable(on, state.shown < count);
  }

  function axes() {
    const found = [];
    for (let power = Math.ceil(state.at.x[0]); power <= state.at.x[1]; power += 1) {
      const x = across(10 ** power);
      found.push(draw("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, class: "cgn-chart-grid" }));
      found.push(draw("text", { x, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, short(10 ** power)));
    }
    for (let power = Math.ceil(state.at.y[0]); power <= state.at.y[1]; power += 1) {
      const y = down(10 ** power);
      found.push(draw("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "cgn-chart-grid" }));
      found.push(draw("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, short(10 ** power)));
    }
    found.push(draw("text", { x: LEFT + (WIDTH - LEFT - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "Arithmetic intensity, FLOP/B; upwards FLOP/s"));
    return found;
  }

  const top = Math.max(...chart.ceilings.map((one) => one.rate), chart.problem.y);

  function roofs() {
    const [low, high] = state.at.x.map((power) => 10 ** power);
    const slanted = chart.levels.map((one, i) => {
      const end = top / one.rate;
      return draw("line", { x1: across(low), y1: down(low * one.rate), x2: across(end), y2: down(top), class: `cgn-chart-level cgn-chart-level-${i}` });
    });
    const flat = chart.ceilings.map((one) => {
      const ridge = one.rate / chart.levels[0].rate;
      return draw("line", { x1: across(ridge), y1: down(one.rate), x2: across(Math.max(high, ridge)), y2: down(one.rate), class: "cgn-chart-flat" });
    });
    return [...slanted, ...flat];
  }

  /** The names of the roofs, beside the chart: flat ones at their height, slanted ones in a list below. */
  function ends() {
    let lowest = Infinity;
    const flat = [...chart.ceilings].sort((a, b) => a.rate - b.rate).map((one) => {
      lowest = Math.min(lowest - 15, down(one.rate) + 4);
      return draw("text", { x: WIDTH - RIGHT + 6, y: Math.max(TOP + 10, lowest) }, one.words);
    });
    const slanted = chart.levels.map((one, i) => draw("text", { x: WIDTH - RIGHT + 6, y: HEIGHT - BOTTOM - 16 * (chart.levels.length - 1 - i), class: `cgn-chart-name-${i}` }, one.words));
    return [...flat, ...slanted];
  }

  function problem() {
    const x = across(chart.problem.x);
    return [
      draw("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, class: "cgn-chart-problem" }),
      draw("text", { x: x - 6, y: TOP + 14, "text-anchor": "end" }, chart.problem.words),
    ];
  }

  const shown = () => chart.points.slice(0, state.shown);

  function path() {
    const at = new Map(shown().map((one) => [one.round, one]));
    return shown().filter((one) => at.has(one.from)).map((one) => {
      const from = at.get(one.from);
      return draw("line", { x1: across(from.x), y1: down(from.y), x2: across(one.x), y2: down(one.y), class: "cgn-chart-path" });
    });
  }

  function points() {
    return shown().map((one, i) => {
      const words = `${one.name}: ${one.words.join(" · ")}${one.above ? ` · ${one.above}` : ""}`;
      const kind = [one.approved ? "" : "cgn-chart-open", one.above ? "cgn-chart-above" : "", i === state.shown - 1 ? "cgn-chart-last" : ""];
      const spot = draw("circle", { cx: across(one.x), cy: down(one.y), r: i === state.shown - 1 ? 7 : 5, class: `cgn-chart-point ${kind.join(" ")}`, tabindex: 0, role: "img", "aria-label": words, "data-lm-suppress-shortcuts": "true", "data-round": one.round });
      spot.addEventListener("pointerenter", () => tell(told, words));
      spot.addEventListener("focus", () => tell(told, words));
      return spot;
    });
  }

  /** The numbers of the kernels; those that lie together share a label. */
  function labels() {
    const groups = [];
    for (const one of shown()) {
      const [x, y] = [across(one.x), down(one.y)];
      const near = groups.find((group) => Math.abs(group.x - x) < 24 && Math.abs(group.y - y) < 12);
      if (near) near.rounds.push(one.round);
      else groups.push({ x, y, rounds: [one.round] });
    }
    return groups.map(({ x, y, rounds }) => draw("text", { x: x + 12, y: y + 4, class: "cgn-chart-label" }, rounds.map((one) => `r${one}`).join(", ")));
  }

  function step(way) {
    state.shown = Math.min(count, Math.max(1, state.shown + way));
    update();
    const last = chart.points[state.shown - 1];
    tell(told, `${last.name}: ${last.words.join(" · ")}`);
  }

  function start() {
    if (state.shown === count) state.shown = 0;
    tell(play, "Pause");
    step(1);
    playing = setInterval(() => (element.isConnected && state.shown < count ? step(1) : pause()), STEP_MS);
  }

  function pause() {
    clearInterval(playing);
    playing = 0;
    tell(play, "Play");
  }

  function zoomTo(at) {
    state.at = at;
    update();
  }

  /** Where a pointer is, as shares of the two axes. */
  function shares(event) {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    const y = ((event.clientY - box.top) / box.height) * HEIGHT;
    return [(x - LEFT) / (WIDTH - LEFT - RIGHT), (HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM)];
  }

  svg.addEventListener("wheel", (event) => {
    if (!isZoomed) return;
    event.preventDefault();
    const by = event.deltaY < 0 ? 1 / ZOOM : ZOOM;
    const [x, y] = shares(event);
    const zoomed = ([low, high], share) => [low + (high - low) * share * (1 - by), high - (high - low) * (1 - share) * (1 - by)];
    zoomTo({ x: zoomed(state.at.x, x), y: zoomed(state.at.y, y) });
  }, { passive: false });
  svg.addEventListener("pointerdown", (event) => {
    isZoomed = true;
    dragged = { from: shares(event), at: structuredClone(state.at) };
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const now = shares(event);
    const moved = ([low, high], by) => [low - (high - low) * by, high - (high - low) * by];
    zoomTo({ x: moved(dragged.at.x, now[0] - dragged.from[0]), y: moved(dragged.at.y, now[1] - dragged.from[1]) });
  });
  svg.addEventListener("pointerleave", () => (isZoomed = false));
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (dragged = null));
  update();
  return element;
}

function short(value) {
  const found = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, size]) => value >= size);
  return found ? `${Math.round(value / found[1])} ${found[0]}` : String(Number(value.toPrecision(2)));
}
