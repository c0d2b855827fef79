"use strict";
// Figures as SVG, without a library: lines, bands, markers, error bars, bars and maps, as plotly_figures.py describes them.
const drawFigure = (() => {
  const NS = "http://www.w3.org/2000/svg", HEIGHT = 300, LETTER = 6.6, NEAR = 40;
  const DASHES = { dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4", longdashdot: "11 3 2 3" };
  const svg = (tag, attributes, text) => {
    const made = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const plain = (text) => new DOMParser().parseFromString(String(text).replaceAll("<br>", "\n"), "text/html").documentElement.textContent;
  const finite = (values) => values.filter(Number.isFinite);

  const raised = (n) => String(n).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻");
  const written = (value, digits = 4) => {
    if (typeof value === "string") return plain(value);
    if (!value) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e5) return String(+value.toPrecision(digits));
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    return (+mantissa === 1 ? "" : +mantissa === -1 ? "−" : `${+mantissa}·`) + `10${raised(+exponent)}`;
  };
  const linearTicks = (low, high, most) => {
    const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
    const count = Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
    return Array.from({ length: count }, (_, i) => +((Math.ceil(low / step - 1e-9) + i) * step).toPrecision(12));
  };
  const logTicks = (low, high) => {
    const decades = [];
    for (let k = Math.floor(low); k <= Math.ceil(high); k += Math.max(1, Math.ceil((high - low) / 7)))
      decades.push(...(high - low < 1.5 ? [1, 2, 5] : [1]).map((factor) => factor * 10 ** k));
    return decades.filter((value) => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9);
  };

  // a name in that number of letters: both of its ends, because those of levels differ in the last
  const within = (text, most) => text.length <= most + 1 ? text : text.slice(0, Math.max(1, Math.ceil(most / 3))) + "…" + text.slice(-Math.max(1, most - Math.ceil(most / 3)));

  // an axis: where values are between 0 and 1, and its ticks
  const axis = (layout, values, extra, length) => {
    const log = layout.type === "log";
    if (layout.type === "category" || values.some((value) => typeof value === "string")) {
      const names = [...new Set(values)], down = layout.autorange === "reversed";
      const at = (name) => { const p = (names.indexOf(name) + 0.5) / names.length; return down ? 1 - p : p; };
      return { at, names, ticks: names.map((name) => [at(name), plain(name)]), room: 1 / names.length };
    }
    const scale = (value) => log ? Math.log10(value) : value;
    let [low, high] = layout.range || [], known = finite(values.concat(extra).map(scale));
    if (!layout.range) {
      [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 1];
      if (layout.rangemode === "tozero") low = Math.min(low, 0);
      const pad = (high - low || Math.abs(high) || 1) * 0.05;
      [low, high] = [layout.rangemode === "tozero" && low === 0 ? low : low - pad, high + pad];
      if (layout.autorange === "reversed") [low, high] = [high, low];
    }
    const at = (value) => (scale(value) - low) / (high - low), [least, most] = [Math.min(low, high), Math.max(low, high)];
    const ticks = layout.tickvals ? layout.tickvals.map((value, i) => [at(value), plain(layout.ticktext[i])])
      : (log ? logTicks(least, most) : linearTicks(least, most, Math.max(2, length / 55))).map((value) => [at(value), written(value)]);
    return { at, ticks: ticks.filter(([p]) => p > -1e-9 && p < 1 + 1e-9), room: 0 };
  };

  const SHAPES = {
    circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`,
    square: (r) => `M${-r},${-r}H${r}V${r}H${-r}Z`,
    diamond: (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0Z`,
    "triangle-up": (r) => `M0,${-1.2 * r}L${1.2 * r},${r}H${-1.2 * r}Z`,
    "triangle-down": (r) => `M0,${1.2 * r}L${1.2 * r},${-r}H${-1.2 * r}Z`,
    cross: (r) => `M${-r},${-r / 3}H${-r / 3}V${-r}H${r / 3}V${-r / 3}H${r}V${r / 3}H${r / 3}V${r}H${-r / 3}V${r / 3}H${-r}Z`,
    x: (r) => `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`,
    star: (r) => "M" + Array.from({ length: 10 }, (_, i) => {
      const reach = i % 2 ? r / 2.2 : r * 1.1, angle = Math.PI * (i / 5 - 0.5);
      return `${(reach * Math.cos(angle)).toFixed(2)},${(reach * Math.sin(angle)).toFixed(2)}`;
    }).join("L") + "Z",
  };
  const symbol = (marker, more = {}) => svg("path", {
    d: (SHAPES[marker.symbol] || SHAPES.circle)((marker.size || 8) / 2), fill: marker.symbol === "x" ? "none" : marker.color,
    stroke: marker.symbol === "x" ? marker.color : "var(--panel)", "stroke-width": marker.symbol === "x" ? 1.6 : marker.line?.width ?? 0.5, ...more });

  const joined = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${a.toFixed(1)},${b.toFixed(1)}`).join("");
  const steps = (points, stepped) => stepped ? points.flatMap(([a, b], i) => i ? [[a, points[i - 1][1]], [a, b]] : [[a, b]]) : points;

  // the colour at a place between 0 and 1 of a scale of colours, and whether it is dark
  const shade = (scale, place) => {
    const above = scale.findIndex(([at]) => at >= place), [[low, from], [high, to]] = [scale[Math.max(above - 1, 0)], scale[above]];
    const parts = [1, 3, 5].map((i) => {
      const [a, b] = [from, to].map((colour) => parseInt(colour.slice(i, i + 2), 16));
      return Math.round(a + (b - a) * (high > low ? (place - low) / (high - low) : 0));
    });
    return [`rgb(${parts})`, 0.3 * parts[0] + 0.6 * parts[1] + 0.1 * parts[2] < 130];
  };

  const swatch = (trace) => {
    const made = svg("svg", { width: 22, height: 12, "aria-hidden": "true" });
    if (trace.fill) made.append(svg("rect", { x: 2, y: 1, width: 18, height: 10, fill: trace.fillcolor }));
    else if (trace.type === "bar") made.append(svg("rect", { x: 4, y: 1, width: 14, height: 10, fill: trace.marker.color }));
    else if (trace.mode === "lines") made.append(svg("line", { x1: 1, x2: 21, y1: 6, y2: 6, stroke: trace.line.color, "stroke-width": 2, "stroke-dasharray": DASHES[trace.line.dash] || "none" }));
    else made.append(symbol({ color: trace.line?.color, ...trace.marker, size: 8 }, { transform: "translate(11,6)" }));
    return made;
  };

  return (box, panel) => {
    const { traces, layout } = panel, width = Math.max(box.clientWidth, 240), narrow = width < 440;
    const all = (key, of = traces) => of.flatMap((trace) => Array.from(trace[key] || []));
    const ends = (of, key) => of.flatMap((trace) => (trace[`error_${key}`] ? trace[key].flatMap((value, i) =>
      [value + trace[`error_${key}`].array[i], value - trace[`error_${key}`].arrayminus[i]]) : []));
    const first = traces.filter((trace) => trace.yaxis !== "y2"), bars = traces.filter((trace) => trace.type === "bar");
    const map = traces.find((trace) => trace.type === "heatmap");
    const edges = (key) => [-0.5, map[key].length - 0.5];

    // the legend, and room for what stands around the axes
    const legend = document.createElement("div");
    legend.className = "legend";
    if (layout.showlegend !== false && !map)
      for (const trace of traces.filter((trace) => trace.showlegend !== false && trace.name)) {
        const entry = document.createElement("span");
        entry.append(swatch(trace), plain(trace.name));
        legend.append(entry);
      }
    const y = axis(layout.yaxis || {}, map ? edges("y") : all("y", first), ends(first, "y"), HEIGHT * 1.6);
    const left = Math.min(30 + LETTER * Math.max(2, ...y.ticks.map(([, text]) => text.length)), (map && narrow ? 0.28 : 0.4) * width);
    const right = 12, top = 8, bottom = 46, w = width - left - right, h = HEIGHT - top - bottom;
    const x = axis(layout.xaxis || {}, map ? edges("x") : bars.length ? [...all("x", bars), 0] : all("x"), ends(traces, "x"), narrow ? w : 0.8 * w);
    const second = layout.yaxis2 ? axis(layout.yaxis2, [], [], h) : null;
    const px = (value) => left + w * x.at(value), py = (value, on = y) => top + h * (1 - on.at(value));

    const picture = svg("svg", { class: "picture", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" });
    const clip = `clip-${box.id}`, inside = svg("g", { "clip-path": `url(#${clip})` });
    const frame = svg("clipPath", { id: clip });
    frame.append(svg("rect", { x: left - 5, y: top - 5, width: w + 10, height: h + 10 }));
    picture.append(frame);
    const grid = map ? 0 : 1;
    for (const [p, text] of y.ticks) {
      const at = top + h * (1 - p);
      picture.append(svg("line", { class: "grid", x1: left, x2: left + w, y1: at, y2: at, opacity: grid }));
      const most = Math.floor((left - 30) / LETTER);
      picture.append(svg("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, within(text, most)));
    }
    const room = Math.floor(1.5 * w / Math.max(x.ticks.length, 1) / LETTER);  // of names in two rows
    const crowded = Math.max(...x.ticks.map(([, text]) => text.length), 0) * LETTER > 0.95 * w / Math.max(x.ticks.length, 1);
    x.ticks.forEach(([p, text], i) => {
      const at = left + w * p;
      picture.append(svg("line", { class: "grid", x1: at, x2: at, y1: top, y2: top + h, opacity: grid }));
      const named = crowded && layout.xaxis?.tickvals, said = named ? within(text, room) : text, outside = named && at + said.length * LETTER * 0.55 > width;
      if (!crowded || !(i % 2) || named)
        picture.append(svg("text", { x: outside ? width - 1 : at, y: top + h + (named && i % 2 ? 30 : 16), "text-anchor": outside ? "end" : "middle" }, said));
    });
    const titleOf = (which) => plain(layout[which]?.title?.text || "");
    const fit = (text, room) => text.length * LETTER > room ? text.slice(0, Math.floor(room / LETTER) - 1) + "…" : text;
    picture.append(svg("text", { class: "title", x: left + w / 2, y: HEIGHT - 8, "text-anchor": "middle" }, fit(titleOf("xaxis"), w)));
    picture.append(svg("text", { class: "title", transform: `translate(13,${top + h / 2}) rotate(-90)`, "text-anchor": "middle" }, fit(titleOf("yaxis"), h + 20)));
    for (const shape of layout.shapes || []) {
      const [upper, lower] = [py(shape.y1), py(shape.y0)];
      inside.append(svg("rect", { x: left, width: w, y: upper, height: lower - upper, fill: shape.fillcolor }));
    }
    picture.append(inside);

    const size = 0.8 * h * y.room / Math.max(bars.length, 1), beside = (trace) => trace.type === "bar" ? (bars.indexOf(trace) - (bars.length - 1) / 2) * size : 0;
    const points = [];  // [x, y, text] on the screen, to be found by the mouse
    const told = (trace, i) => trace.text ? plain(trace.text[i]) : `${written(trace.x[i])}: ${written(trace.y[i])}`;
    let before = null;
    for (const trace of traces) {
      const on = trace.yaxis === "y2" ? second : y;
      if (trace.type === "heatmap") {
        const cw = Math.abs(px(1) - px(0)), ch = Math.abs(py(1) - py(0));
        trace.z.forEach((row, i) => row.forEach((value, j) => {
          if (value === null) return;
          const [colour, dark] = shade(trace.colorscale, (value - trace.zmin) / (trace.zmax - trace.zmin)), lines = plain(trace.text[i][j]).split("\n");
          inside.append(svg("rect", { x: px(j) - cw / 2 + 1, y: py(i) - ch / 2 + 1, width: cw - 2, height: ch - 2, fill: colour }));
          const fitting = lines.every((line) => line.length * LETTER <= cw) ? lines : lines.slice(0, 1).filter((line) => line.length * LETTER <= cw);  // no number is cut
          fitting.forEach((line, k) => inside.append(svg("text", { x: px(j), y: py(i) + 4 + 13 * (k - (fitting.length - 1) / 2), "text-anchor": "middle", class: dark ? "on-dark" : "on-light" }, line)));
        }));
        continue;
      }
      if (trace.type === "bar") {
        trace.x.forEach((value, i) => {
          const at = py(trace.y[i]) + beside(trace), zero = px(0);
          inside.append(svg("rect", { x: Math.min(zero, px(value)), width: Math.abs(px(value) - zero), y: at - size / 2, height: size * 0.92, fill: trace.marker.color, "fill-opacity": 0.85 }));
          points.push([px(value), at, `${plain(trace.y[i])}, ${trace.name}: ${written(value)}`]);
        });
      }
      const xy = trace.x.map((value, i) => [px(value), py(trace.y[i], on)]);
      if (trace.type !== "bar" && trace.mode !== "markers") {
        const known = steps(xy.filter((point) => point.every(Number.isFinite)), trace.line.shape === "hv"), path = joined(known);
        if (trace.fill && known.length) {
          const back = trace.fill === "tonexty" && before ? [...before].reverse() : [[known.at(-1)[0], py(0, on)], [known[0][0], py(0, on)]];
          inside.append(svg("path", { d: `${path}L${joined(back).slice(1)}Z`, fill: trace.fillcolor }));
        }
        before = known;
        if (trace.line.width !== 0) inside.append(svg("path", { d: path, fill: "none", stroke: trace.line.color, "stroke-width": 2, "stroke-dasharray": DASHES[trace.line.dash] || "none", "stroke-linejoin": "round" }));
      }
      for (const [key, bar] of [["x", trace.error_x], ["y", trace.error_y]]) {
        if (!bar) continue;
        trace.x.forEach((value, i) => {
          const [from, to] = [-bar.arrayminus[i], bar.array[i]].map((d) => key === "x" ? px(value + d) : py(trace.y[i] + d, on));
          const at = key === "x" ? py(trace.y[i], on) + beside(trace) : px(value);
          const d = key === "x" ? `M${from},${at - 4}V${at + 4}M${from},${at}H${to}M${to},${at - 4}V${at + 4}` : `M${at - 4},${from}H${at + 4}M${at},${from}V${to}M${at - 4},${to}H${at + 4}`;
          inside.append(svg("path", { d, fill: "none", stroke: bar.color || trace.marker?.color || "var(--soft)", "stroke-width": 1.5 }));
        });
      }
      if (trace.mode === "markers") xy.forEach(([a, b]) => { if (Number.isFinite(a + b)) inside.append(symbol(trace.marker || { color: trace.line?.color, size: 7 }, { transform: `translate(${a.toFixed(1)},${b.toFixed(1)})` })); });
      if (trace.hoverinfo !== "skip" && trace.type !== "bar")
        xy.forEach(([a, b], i) => { if (Number.isFinite(a + b)) points.push([a, b, [...(trace.hoverinfo === "name" ? [] : [told(trace, i)]), ...(trace.name ? [plain(trace.name)] : [])].join(" · ")]); });
    }

    // what is nearest to the mouse, or to a finger, in words
    const tip = document.createElement("div"), dot = svg("circle", { r: 5, class: "dot", visibility: "hidden" });
    tip.className = "tip";
    tip.hidden = true;
    picture.append(dot);
    const leave = () => { tip.hidden = true; dot.setAttribute("visibility", "hidden"); };
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("pointermove", (event) => {
      const frame = picture.getBoundingClientRect(), [a, b] = [event.clientX - frame.x, event.clientY - frame.y];
      let nearest = null, least = NEAR;
      for (const point of points) {
        const distance = Math.hypot(point[0] - a, point[1] - b);
        if (distance <= least) [nearest, least] = [point, distance];  // markers come after the line that they are on
      }
      if (!nearest) { leave(); return; }
      tip.textContent = nearest[2];
      tip.hidden = false;
      tip.style.left = `${Math.max(0, Math.min(nearest[0] + 8, width - tip.offsetWidth))}px`;
      tip.style.top = `${picture.offsetTop + Math.max(0, nearest[1] - tip.offsetHeight - 10)}px`;
      dot.setAttribute("cx", nearest[0]);
      dot.setAttribute("cy", nearest[1]);
      dot.setAttribute("visibility", "visible");
    });
    box.replaceChildren(legend, picture, tip);
  };
})();
