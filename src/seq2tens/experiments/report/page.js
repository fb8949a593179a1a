// The button in a column header sorts the table: ascending, then descending. Rows without a number stay last.
"use strict";
const collator = new Intl.Collator("en", { numeric: true });

function key(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined
    ? { absent: cell.dataset.absent !== undefined, text: cell.textContent.trim() }
    : { absent: false, number: Number(cell.dataset.value) };
}

function compare(a, b) {
  if ("number" in a && "number" in b) return a.number - b.number;
  if ("number" in a !== "number" in b) return "number" in a ? -1 : 1;
  return collator.compare(a.text, b.text);
}

function sort(head) {
  const table = head.closest("table");
  const descending = head.getAttribute("aria-sort") === "ascending";
  const rows = Array.from(table.tBodies[0].rows, (row) => ({ row, key: key(row, head.cellIndex) }));
  rows.sort((a, b) => {
    if (a.key.absent !== b.key.absent) return a.key.absent ? 1 : -1;
    return descending ? compare(b.key, a.key) : compare(a.key, b.key);
  });
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  table.tBodies[0].append(...rows.map(({ row }) => row));
}

for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sort(button.closest("th")));
}
