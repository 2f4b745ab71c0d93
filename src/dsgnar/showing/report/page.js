"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)").matches;
  let over = "iteration";

  // --- data: colours are CSS variables, planes are 32-bit numbers in base64 ---
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const themed = (value) => {
    if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(themed);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, themed(inner)]));
  };
  const rows = ({ float32, columns }) => {
    const bytes = Uint8Array.from(atob(float32), (letter) => letter.charCodeAt(0));
    const numbers = new Float32Array(bytes.buffer);
    return Array.from({ length: numbers.length / columns }, (_, k) => Array.from(numbers.subarray(k * columns, (k + 1) * columns)));
  };
  for (const chart of charts) {
    for (const trace of chart.traces) {
      if (trace.z) trace.z = rows(trace.z);
      if (trace.logarithmic) {
        trace.customdata = trace.z;
        trace.z = trace.z.map((row) => row.map((error) => Math.log10(Math.max(error, 1e-300))));
        delete trace.logarithmic;
      }
    }
  }

  // --- drawing ---
  const base = () => ({
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("--text") },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 52, r: 8, t: 8, b: 38 },
    dragmode: coarse ? false : "zoom",
    hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: colour("--text"), size: 12 } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"), activecolor: colour("--accent") },
    showlegend: false, // the page has one
  });
  const axis = (given) => ({
    automargin: true, zeroline: false, gridcolor: colour("--grid"), linecolor: colour("--line"), showline: true,
    tickcolor: colour("--line"), tickfont: { color: colour("--muted"), size: given?.type === "log" ? 10 : 12 }, ...given,
  });
  const timed = (chart) => chart.clocks.length > 0;
  const ends = () => charts.filter(timed).flatMap((chart) => (over === "iteration" ? chart.traces.map((trace) => trace.x) : chart.clocks)).map((x) => x.at(-1));
  const courseAxis = () => ({
    title: { text: over },
    unifiedhovertitle: { text: over === "iteration" ? "iteration %{x}" : "%{x:.1f} s" },
    range: [0, 1.01 * Math.max(1e-3, ...ends())],
  });
  const marks = (chart) => chart.marks.map((mark) => ({
    type: "line", x0: mark[over], x1: mark[over], yref: "paper", y0: 0, y1: 1, layer: "below",
    line: { color: colour(mark.colour), width: 1.2, dash: mark.dash }, opacity: chart.marks.length > 12 ? 0.45 : 1,
  }));
  const draw = (chart) => {
    const layout = { ...base(), ...themed(chart.layout) };
    layout.xaxis = axis({ ...(timed(chart) ? courseAxis() : {}), ...layout.xaxis });
    layout.yaxis = axis(layout.yaxis);
    if (chart.traces[0].type === "heatmap") layout.xaxis.showgrid = layout.yaxis.showgrid = false;
    layout.shapes = marks(chart);
    const traces = themed(chart.traces).map((trace, k) => (timed(chart) && over === "seconds" ? { ...trace, x: chart.clocks[k] } : trace));
    for (const trace of traces) if (trace.colorbar) trace.colorbar.tickfont = { color: colour("--muted") };
    const options = {
      responsive: true, displaylogo: false, displayModeBar: coarse ? false : "hover",
      modeBarButtons: [["toImage", "resetScale2d"]], toImageButtonOptions: { filename: chart.name, scale: 3 },
    };
    return Plotly.react(document.getElementById(chart.id), traces, layout, options);
  };
  const drawAll = () => Promise.all(charts.map(draw));

  // --- zooming one chart of the course zooms all of them ---
  const link = (chart) => {
    const plot = document.getElementById(chart.id);
    plot.on("plotly_relayout", (change) => {
      if (plot.dataset.following) return;
      const range = change["xaxis.autorange"] ? { "xaxis.autorange": true }
        : change["xaxis.range"] ? { "xaxis.range": change["xaxis.range"] }
        : change["xaxis.range[0]"] === undefined ? null : { "xaxis.range": [change["xaxis.range[0]"], change["xaxis.range[1]"]] };
      if (!range) return;
      for (const other of charts) {
        const follower = document.getElementById(other.id);
        if (!timed(other) || follower === plot) continue;
        follower.dataset.following = "yes";
        Plotly.relayout(follower, { ...range }).then(() => delete follower.dataset.following);
      }
    });
  };

  drawAll().then(() => {
    charts.filter(timed).forEach(link);
    document.documentElement.dataset.drawn = "yes";
  });
  dark.addEventListener("change", drawAll);
  for (const choice of document.querySelectorAll("input[name=over]")) {
    choice.addEventListener("change", () => { over = choice.value; drawAll(); });
  }
})();
