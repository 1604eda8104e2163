// Charts: <canvas data-figures="JSON">, with a form (bar or line), labels and series of {label, colour, data}. A colour is a
// class. The figures are in an attribute, because htmx removes scripts from the parts that it loads.
// Bars are stacked. Only on pages with a chart; the legend and a table with the figures are beside it, without this file.
"use strict";

const drawn = [];

// Chart.js cannot read light-dark() and color-mix(): a pixel of the colour can be.
const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function plain(css) {
  pixel.fillStyle = css;
  pixel.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pixel.getImageData(0, 0, 1, 1).data;
  return `rgb(${red}, ${green}, ${blue})`;
}

// The colour that a value of CSS has in the theme of the moment, in an element of these classes.
function colour(css, classes = "") {
  const probe = document.createElement("i");
  probe.className = classes;
  probe.style.color = css;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return plain(value);
}

function draw() {
  while (drawn.length) drawn.pop().destroy();
  const text = colour("var(--tblr-secondary)");
  const line = colour("var(--tblr-border-color)");
  const font = { family: getComputedStyle(document.body).fontFamily, size: 11 };
  for (const canvas of document.querySelectorAll("canvas[data-figures]")) {
    const { form, labels, series } = JSON.parse(canvas.dataset.figures);
    const isLine = form === "line";
    const datasets = series.map(({ label, colour: name, data }) => {
      const drawnIn = colour("var(--s, var(--c))", name);
      return isLine
        ? { label, data, borderColor: drawnIn, backgroundColor: drawnIn, borderWidth: 1.75, pointRadius: 0, pointHitRadius: 12 }
        : { label, data, backgroundColor: drawnIn, borderRadius: 2, maxBarThickness: 22 };
    });
    drawn.push(new Chart(canvas, {
      type: isLine ? "line" : "bar",
      data: { labels, datasets },
      options: {
        animation: false,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        plugins: { legend: { display: false } },
        scales: {
          x: {
            stacked: !isLine,
            grid: { display: false },
            border: { color: line },
            ticks: { color: text, maxRotation: 0, autoSkipPadding: 12, font },
          },
          y: {
            stacked: !isLine,
            beginAtZero: true,
            border: { display: false },
            grid: { color: line },
            ticks: { color: text, maxTicksLimit: 4, precision: 0, font },
          },
        },
      },
    }));
  }
}

document.fonts.ready.then(() => {
  draw();
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.target.querySelector("canvas[data-figures]")) draw();
  });
});
