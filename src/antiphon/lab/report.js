"use strict";
// Sorts the tables of class "sortable" by a click on a heading; without it they stand in the order of the run.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const original = [...body.rows];
  headings.forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const was = heading.getAttribute("aria-sort");
      const now = was === "ascending" ? "descending" : was === "descending" ? null : "ascending";
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      if (now) heading.setAttribute("aria-sort", now);
      body.append(...(now ? sorted(original, place, now === "ascending" ? 1 : -1) : original));
    });
  });
}

// Empty cells stand last in either direction.
function sorted(rows, place, direction) {
  const keyed = rows.map((row) => ({ row, key: keyOf(row.cells[place]) }));
  const full = keyed.filter((item) => item.key !== "");
  full.sort((a, b) => direction * compare(a.key, b.key));
  return [...full, ...keyed.filter((item) => item.key === "")].map((item) => item.row);
}

function keyOf(cell) {
  const key = cell.dataset.key;
  if (key === undefined) return cell.textContent;
  return key === "inf" ? Infinity : Number(key);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a === b ? 0 : a - b;
  return String(a).localeCompare(String(b));
}
