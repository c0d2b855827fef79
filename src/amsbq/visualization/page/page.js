"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const remembered = (key, value) => {
    try { if (value !== undefined) sessionStorage.setItem(key, value); return sessionStorage.getItem(key); } catch { return null; }
  };

  // of several outputs one is chosen; the others are shown in the table of all outputs only
  const choice = document.getElementById("chosen");
  const shown = (name) => Object.hasOwn(data.parts, name);
  const choose = () => {
    const name = choice && shown(choice.value) ? choice.value : data.chosen;
    Object.assign(data, data.parts[name], { shown: name });
    data.hidden = data.columns.map((column) => data.answers.some((row) => row.name !== name && /^(value|variance|mean|std)\./.test(column) && column.slice(column.indexOf(".") + 1) === row.name));
  };
  const figures = () => [...data.profile, ...data.figures];
  if (choice && shown(remembered("output"))) choice.value = remembered("output");
  choose();

  // light or dark: as the system says, unless the reader has chosen
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paint = () => { root.dataset.theme = remembered("theme") || (dark.matches ? "dark" : "light"); };
  paint();

  // the table
  const table = document.getElementById("evaluations"), body = document.createElement("tbody");
  let sorted = { column: 0, up: true };
  const text = (value) => value === null ? "" : typeof value === "number" && !Number.isInteger(value) ? String(+value.toPrecision(7)) : String(value);
  const line = (row) => {
    const line = document.createElement("tr");
    if (row[status] === "failed") line.className = "failed";
    row.forEach((value, i) => {
      if (data.hidden[i]) return;
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
    body.replaceChildren(...rows.slice(0, ready() ? rows.length : 100).map(line));  // the rest when the page has loaded
    headings.forEach((heading, i) => heading.setAttribute("aria-sort", i !== column ? "none" : up ? "ascending" : "descending"));
  };
  const head = table.createTHead().insertRow();
  let headings = [], status = -1, titled = "";
  const entitle = () => {
    titled = String(data.hidden);
    status = data.columns.indexOf("status");
    headings = data.columns.map((name, i) => {
      const heading = document.createElement("th"), button = document.createElement("button");
      heading.scope = "col";
      if (data.words.includes(i)) heading.className = "words";
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => { sorted = { column: i, up: sorted.column === i ? !sorted.up : true }; fill(); });
      heading.append(button);
      return heading;
    });
    head.replaceChildren(...headings.filter((_, i) => !data.hidden[i]));
  };
  table.append(body);
  entitle();
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
  const element = (tag, text, attributes) => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  };
  const describe = (figure) => {
    const plot = document.getElementById(`plot-${figure.id}`);
    plot.setAttribute("aria-label", `${figure.title}. ${figure.caption}`);
    plot.nextElementSibling.textContent = figure.caption;
  };
  const make = (figure) => {
    const box = element("figure"), title = element("h3"), plot = element("div", "", { class: "plot", id: `plot-${figure.id}`, role: "img" });
    title.append(element("span", figure.title));
    if (figure.panels.length > 1) {
      const choice = element("select", "", { id: `input-${figure.id}`, "aria-label": `Input of: ${figure.title}` });
      choice.append(...figure.panels.map((panel, i) => element("option", panel.label, { value: i })));
      choice.addEventListener("change", () => { if (drawn.has(figure.id)) draw(figure.id); });
      title.append(choice);
    }
    box.append(title, plot, element("figcaption"));
    document.getElementById(data.profile.includes(figure) ? "profile" : figure.id === "convergence" ? "first" : "pictures").append(box);
    describe(figure);
  };
  const start = () => {
    if (data.full) {
      const script = document.createElement("script");
      script.textContent = document.getElementById("library").textContent;
      document.head.append(script);
    }
    started = true;
    for (const figure of figures()) seen.observe(document.getElementById(`plot-${figure.id}`));
    setTimeout(() => { if (body.rows.length < data.rows.length) fill(); }, 500);
  };
  let started = false;
  const layout = (panel) => {
    const css = getComputedStyle(root), colour = (name) => css.getPropertyValue(name).trim();
    const axis = { gridcolor: colour("--line"), zerolinecolor: colour("--line"), linecolor: colour("--line"), automargin: true,
      exponentformat: "power" };
    const axes = {};
    for (const key of ["xaxis", "yaxis", "yaxis2"]) if (key !== "yaxis2" || panel.layout.yaxis2) axes[key] = { ...axis, ...panel.layout[key] };
    return { ...panel.layout, ...axes, uirevision: `${data.shown} ${panel.label}`, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("--ink"), family: "system-ui, sans-serif", size: 12 }, margin: { l: 56, r: 40, t: 8, b: 44 }, modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--accent") },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" }, hoverlabel: { align: "left" } };
  };
  // what is in a figure stays on this machine
  const config = { responsive: true, displaylogo: false, displayModeBar: "hover", showSendToCloud: false, plotlyServerURL: "", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const drawn = new Set();  // only what the reader has scrolled to
  const draw = (id) => {
    const figure = figures().find((figure) => figure.id === id), choice = document.getElementById(`input-${id}`);
    const panel = figure.panels[choice ? Number(choice.value) : 0];
    drawn.add(id);
    if (!data.full) { drawFigure(document.getElementById(`plot-${id}`), panel); return; }
    Plotly.react(`plot-${id}`, structuredClone(panel.traces), layout(panel), config);
  };
  const redraw = () => drawn.forEach(draw);
  const seen = new IntersectionObserver((entries) => entries.forEach((entry) => {
    if (!entry.isIntersecting) return;
    seen.unobserve(entry.target);
    draw(entry.target.id.slice("plot-".length));
  }), { rootMargin: "400px" });
  figures().forEach(make);
  let width = window.innerWidth;
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; redraw(); } });
  dark.addEventListener("change", () => { paint(); redraw(); });
  document.getElementById("theme").addEventListener("click", () => {
    remembered("theme", root.dataset.theme === "dark" ? "light" : "dark"); paint(); redraw();
  });
  let opened = [];
  window.addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    opened = [...document.querySelectorAll("#findings details:not([open])")];
    opened.forEach((finding) => { finding.open = true; });
    if (started) figures().forEach((figure) => draw(figure.id));
  });
  window.addEventListener("afterprint", () => { paint(); opened.forEach((finding) => { finding.open = false; }); redraw(); });
  window.addEventListener("load", () => setTimeout(start, 0));

  // while the run continues: a page that is a file is loaded again, one with a server gets new content
  const place = Number(remembered("place"));
  if (place) window.scrollTo(0, place);
  if (data.refresh) setTimeout(() => { remembered("place", String(window.scrollY)); location.reload(); }, 1000 * data.refresh);
  const say = (id, text) => { document.getElementById(id).textContent = text; };
  const show = (next) => {
    Object.assign(data, next);
    choose();
    document.title = data.title;
    say("state", data.stopped ? "" : "— the run continues");
    if (data.answer) {
      say("mean", data.answer.mean);
      say("pm", data.answer.std ? "±" : "");
      say("std", data.answer.std);
      say("unit", data.answer.unit);
      say("interval", data.answer.interval);
    } else {
      document.getElementById("answers").replaceChildren(...data.answers.map((row) => {
        const line = element("tr"), bar = element("div", "", { class: "accuracy" });
        bar.append(element("div"));
        bar.firstElementChild.style.width = `${100 * row.share}%`;
        const accuracy = element("td", "", { class: "words" });
        accuracy.append(bar, row.accuracy);
        line.append(element("td", row.label, { class: "words" }), element("td", row.mean), element("td", row.interval), accuracy);
        return line;
      }));
      const kept = choice.value;
      choice.replaceChildren(...Object.keys(data.parts).map((name) => element("option", name)));
      choice.value = shown(kept) ? kept : data.chosen;
    }
    say("spent", `${data.spent}. ${data.stopped ? `Stopped: ${data.stopped}.` : ""}`);
    const bar = document.getElementById("budget");
    bar.setAttribute("aria-label", data.spent);
    bar.firstElementChild.style.width = `${100 * data.share}%`;
    present();
  };
  const present = () => {  // all that is about the chosen output
    const open = [...document.querySelectorAll("#findings [open] b")].map((about) => about.textContent);
    document.getElementById("findings").replaceChildren(...data.findings.map((finding) => {
      const line = element("details", "", { class: finding.level }), summary = element("summary");
      summary.append(element("b", finding.about), " ", element("span", finding.text));
      line.append(summary, ...(finding.advice ? [element("p", finding.advice)] : []));
      line.open = open.includes(finding.about);
      return line;
    }));
    document.getElementById("more").hidden = !data.output.length;
    document.getElementById("output").replaceChildren(...data.output.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
    if (String(data.hidden) !== titled) entitle();
    fill();
    for (const plot of document.querySelectorAll(".plot")) {
      const id = plot.id.slice("plot-".length);
      if (figures().some((figure) => figure.id === id)) continue;
      drawn.delete(id);
      plot.parentElement.remove();
    }
    for (const figure of figures()) {
      if (document.getElementById(`plot-${figure.id}`)) { describe(figure); continue; }
      make(figure);
      if (started) seen.observe(document.getElementById(`plot-${figure.id}`));
    }
    redraw();
  };
  if (choice) choice.addEventListener("change", () => { remembered("output", choice.value); choose(); present(); });
  const listen = async () => {  // an answer comes when there is something new, or after some seconds
    let pause = 0;
    try {
      const answer = await fetch(`content?since=${data.version ?? ""}`);
      if (answer.status === 200) show(await answer.json());
      say("connection", answer.headers.get("Trouble") || "");
    } catch { say("connection", "— not updated any more: amsbq watch has ended"); pause = 1000; }
    setTimeout(listen, pause);
  };
  if (data.live) listen();
})();
