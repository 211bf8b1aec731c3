// Headers become buttons that sort their table. Without this script the page is complete.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const key = (row, column, isNumber) => {
    const cell = row.cells[column];
    const text = cell.dataset.key ?? cell.textContent.trim();
    return isNumber || cell.dataset.key ? parseFloat(text) : text;
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const isNumber = head.classList.contains("num");
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [one, other].map((row) => key(row, column, isNumber));
        if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
        return (typeof a === "number" ? a - b : a.localeCompare(b)) * (down ? -1 : 1);
      });
      body.append(...rows);
    });
  });
}
