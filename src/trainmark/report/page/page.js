"use strict";

const specs = JSON.parse(document.getElementById("specs").textContent);

const NARROW = 480;

// On a phone, axis labels, titles and legends must leave room for the marks.
function fitted(spec, width) {
  if (width >= NARROW) return spec;
  const { axis, legend } = spec.config;
  return {
    ...spec,
    config: {
      ...spec.config,
      axis: { ...axis, labelFontSize: 10, labelLimit: 0.4 * width, titleLimit: 0.6 * width },
      legend: { ...legend, columns: 1, labelLimit: width - 60 },
    },
  };
}

async function draw(element) {
  const spec = fitted(specs[element.id], element.clientWidth);
  try {
    // "ast": expressions are interpreted, so the page needs no permission to evaluate code.
    await window.vegaEmbed(element, spec, { actions: false, renderer: "svg", ast: true });
    element.querySelector("svg").setAttribute("aria-hidden", "true"); // the element has the description
  } catch (error) {
    element.textContent = `This chart could not be drawn: ${error.message}`;
  }
}

// Charts take the width of their container, so a folded one is drawn when it is unfolded.
async function drawIn(part) {
  for (const element of part.querySelectorAll(".drawing:not([data-drawn])")) {
    if (element.closest("details:not([open])")) continue;
    element.dataset.drawn = "begun";
    await draw(element);
    element.dataset.drawn = "yes";
  }
}

async function drawAll() {
  for (const part of document.querySelectorAll("details.more")) part.addEventListener("toggle", () => drawIn(part));
  await drawIn(document);
  document.documentElement.dataset.drawn = "yes";
}

window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("#runs ~ details")) part.open = true;
});

// Missing values and NaN come last in either order.
function valueOf(cell) {
  const text = cell.innerText.split("\n")[0].trim();
  if (cell.dataset.value !== undefined) {
    const number = Number(cell.dataset.value.replace("inf", "Infinity"));
    return Number.isNaN(number) ? null : number;
  }
  if (text === "" || text === "-" || text === "NaN") return null;
  const number = Number(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text : number;
}

function inOrder(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * (typeof a === "number" ? (a > b) - (a < b) : a.localeCompare(b, undefined, { numeric: true }));
}

for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const header = button.closest("th");
    const table = header.closest("table");
    const column = [...header.parentElement.children].indexOf(header);
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    const values = new Map(rows.map((row) => [row, valueOf(row.cells[column])]));
    rows.sort((a, b) => inOrder(values.get(a), values.get(b), down ? -1 : 1));
    table.tBodies[0].append(...rows);
  });
}

const toggle = document.getElementById("theme");
function dress(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  toggle.setAttribute("aria-pressed", String(dark));
}
dress(window.matchMedia("(prefers-color-scheme: dark)").matches);
toggle.addEventListener("click", () => dress(document.documentElement.dataset.theme !== "dark"));

drawAll();
