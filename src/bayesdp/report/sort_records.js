"use strict";
// Sorts the table of records by the exact numbers of the page's JSON. Without it the table stands most exposed first.
const rows = JSON.parse(document.getElementById("bayesdp-records").textContent).derived.rows;
const table = document.querySelector("#each-record table");
const heads = [...table.tHead.rows[0].cells], names = Object.keys(rows[0]);
const lines = [...table.tBodies[0].rows].map((line, place) => ({ line, row: rows[place] }));
const words = new Intl.Collator(undefined, { numeric: true });
const value = (row, name) => name === "epsilon" && row[name] === "inf" ? Infinity : row[name];
const compare = (a, b) => typeof a === "number" ? (a > b) - (a < b) : words.compare(a, b);

function mark(place, way) {
  heads.forEach((head, other) => other === place ? head.setAttribute("aria-sort", way) : head.removeAttribute("aria-sort"));
}

function sort(place) {
  const rising = heads[place].getAttribute("aria-sort") !== "ascending", name = names[place];
  lines.sort((a, b) => (rising ? 1 : -1) * compare(value(a.row, name), value(b.row, name)) || a.row.rank - b.row.rank);
  table.tBodies[0].append(...lines.map(one => one.line));
  mark(place, rising ? "ascending" : "descending");
}

heads.forEach((head, place) => {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sort(place));
  head.append(button);
});
mark(names.indexOf("epsilon"), "descending");
