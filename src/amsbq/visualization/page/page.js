"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const remembered = (key, value) => {
    try { if (value !== undefined) sessionStorage.setItem(key, value); return sessionStorage.getItem(key); } catch { return null; }
  };

  // light or dark: as the system says, unless somebody has chosen
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = () => { root.dataset.theme = remembered("theme") || (dark.matches ? "dark" : "light"); };
  paint();

  // the table
  const table = document.getElementById("evaluations"), body = document.createElement("tbody");
  let sorted = { column: 0, up: true };
  const text = (value) => value === null ? "" : typeof value === "number" && !Number.isInteger(value) ? String(+value.toPrecision(7)) : String(value);
  const status = data.columns.indexOf("status");
  const line = (row) => {
    const line = document.createElement("tr");
    if (row[status] === "failed") line.className = "failed";
    row.forEach((value, i) => {
      const cell = line.insertCell();
      cell.textContent = text(value);
      if (data.words.includes(i)) { cell.className = "words"; cell.title = cell.textContent; }
    });
    return line;
  };
  const ready = () => document.readyState === "complete";
  const fill = () => {
    const { column, up } = sorted, empty = (v) => v === null || v === "";
    const rows = [...data.rows].sort((a, b) => {
      const [x, y] = [a[column], b[column]];
      if (empty(x) || empty(y)) return empty(x) - empty(y);
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    body.replaceChildren(...rows.slice(0, ready() ? rows.length : 100).map(line));  // the rest when the page is there
    headings.forEach((heading, i) => heading.setAttribute("aria-sort", i !== column ? "none" : up ? "ascending" : "descending"));
  };
  const head = table.createTHead().insertRow();
  const headings = data.columns.map((name, i) => {
    const heading = document.createElement("th"), button = document.createElement("button");
    heading.scope = "col";
    if (data.words.includes(i)) heading.className = "words";
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => { sorted = { column: i, up: sorted.column === i ? !sorted.up : true }; fill(); });
    heading.append(button);
    head.append(heading);
    return heading;
  });
  table.append(body);
  fill();
  document.getElementById("csv").addEventListener("click", () => {
    // an apostrophe keeps programs for tables from running text that looks like a formula
    const harmless = (v) => typeof v === "string" && /^\s*[=+\-@]/.test(v) && !Number.isFinite(Number(v)) ? `'${v}` : String(v ?? "");
    const quoted = (v) => /[",\n\r]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v;
    const lines = [data.columns, ...data.rows].map((row) => row.map((v) => quoted(harmless(v))).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = data.name + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  // pictures, after everything that can be read: the library takes a second to start
  const start = () => {
    const script = document.createElement("script");
    script.textContent = document.getElementById("library").textContent;
    document.head.append(script);
    for (const figure of data.figures) seen.observe(document.getElementById(`plot-${figure.id}`));
    setTimeout(() => { if (body.rows.length < data.rows.length) fill(); }, 500);
  };
  const layout = (panel) => {
    const css = getComputedStyle(root), colour = (name) => css.getPropertyValue(name).trim();
    const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), linecolor: colour("--line"), automargin: true,
      exponentformat: "power" };
    const axes = {};
    for (const key of ["xaxis", "yaxis", "yaxis2"]) if (key !== "yaxis2" || panel.layout.yaxis2) axes[key] = { ...axis, ...panel.layout[key] };
    return { ...panel.layout, ...axes, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 12 }, margin: { l: 56, r: 16, t: 8, b: 44 },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" }, hoverlabel: { align: "left" } };
  };
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const drawn = new Set();  // only what somebody has scrolled to
  const draw = (figure) => {
    const choice = document.getElementById(`input-${figure.id}`);
    const panel = figure.panels[choice ? Number(choice.value) : 0];
    drawn.add(figure);
    return Plotly.react(`plot-${figure.id}`, structuredClone(panel.traces), layout(panel), config);
  };
  const redraw = () => drawn.forEach(draw);
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    seen.unobserve(entry.target);
    draw(data.figures.find((figure) => `plot-${figure.id}` === entry.target.id));
  }), { rootMargin: "400px" });
  for (const figure of data.figures) {
    const choice = document.getElementById(`input-${figure.id}`);
    if (choice) choice.addEventListener("change", () => { if (drawn.has(figure)) draw(figure); });
  }
  dark.addEventListener("change", () => { paint(); redraw(); });
  document.getElementById("theme").addEventListener("click", () => {
    remembered("theme", root.dataset.theme === "dark" ? "light" : "dark"); paint(); redraw();
  });
  window.addEventListener("beforeprint", () => { root.dataset.theme = "light"; if (window.Plotly) data.figures.forEach(draw); });
  window.addEventListener("afterprint", () => { paint(); redraw(); });
  window.addEventListener("load", () => setTimeout(start, 0));

  // while the run goes on
  const place = Number(remembered("place"));
  if (place) window.scrollTo(0, place);
  if (data.refresh) setTimeout(() => { remembered("place", String(window.scrollY)); location.reload(); }, 1000 * data.refresh);
})();
