"use strict";

const specs = JSON.parse(document.getElementById("specs").textContent);

async function draw(element) {
  const spec = specs[element.id];
  try {
    await window.vegaEmbed(element, spec, { actions: false, renderer: "svg" });
    element.querySelector("svg").setAttribute("aria-hidden", "true"); // its words stand on the element
  } catch (error) {
    element.textContent = `This chart could not be drawn: ${error.message}`;
  }
}

async function drawAll() {
  for (const element of document.querySelectorAll(".drawing")) {
    if (!element.closest("details:not([open])")) await draw(element);
  }
  document.documentElement.dataset.drawn = "yes";
}

// A closed part has no width to draw in, so it is drawn when it is opened.
for (const part of document.querySelectorAll("details.load")) {
  part.addEventListener("toggle", () => {
    if (part.open) for (const element of part.querySelectorAll(".drawing:empty")) draw(element);
  });
}
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details.load")) part.open = true;
});

function valueOf(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.firstChild ? cell.firstChild.textContent.trim() : "";
  const number = Number(text.replaceAll(",", ""));
  return text !== "" && !Number.isNaN(number) ? number : text;
}

function inOrder(a, b) {
  const [numberA, numberB] = [typeof a === "number", typeof b === "number"];
  if (numberA && numberB) return a - b;
  if (numberA !== numberB) return numberA ? -1 : 1;
  return a.localeCompare(b, undefined, { numeric: true });
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
    rows.sort((a, b) => (down ? -1 : 1) * inOrder(values.get(a), values.get(b)));
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
