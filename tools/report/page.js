"use strict";
// The table of variants sorts by its headings, and shows the rows that contain all words and belong to the family.
(() => {
    const table = document.getElementById("table"), form = document.getElementById("filter");
    const words = document.getElementById("words"), family = document.getElementById("family");
    const shown = document.getElementById("shown"), body = table.tBodies[0];
    const rows = Array.from(body.rows, (row, at) => ({
        row, at, text: row.textContent.toLowerCase(), family: row.cells[0].dataset.f,
        bytes: Number(row.cells[1].dataset.v)
    }));

    // Empty values come last in either direction.
    const value = (entry, column) => {
        const cell = entry.row.cells[column];
        if (column === 0) return cell.textContent;
        return cell.dataset.v === "" ? null : Number(cell.dataset.v);
    };
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

    const sort = (column, way) => {
        const keyed = rows.map((entry) => ({entry, key: value(entry, column)}));
        keyed.sort((a, b) => {
            if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.entry.at - b.entry.at;
            return way * compare(a.key, b.key) || a.entry.at - b.entry.at;
        });
        body.append(...keyed.map((k) => k.entry.row));
    };

    const heads = Array.from(table.tHead.lastElementChild.cells);
    heads.forEach((head, column) => {
        // Not a button element: browsers omit buttons when they repeat a heading on the next printed page.
        const button = document.createElement("span");
        button.setAttribute("role", "button");
        button.tabIndex = 0;
        button.append(...head.childNodes);
        head.append(button);
        head.setAttribute("aria-sort", "none");
        button.addEventListener("keydown", (event) => {
            if (event.key !== "Enter" && event.key !== " ") return;
            event.preventDefault();
            button.click();
        });
        button.addEventListener("click", () => {
            // First sorts numbers from the largest, names from the first.
            const now = head.getAttribute("aria-sort"), first = column === 0 ? "ascending" : "descending";
            const next = now === "none" ? first : now === "ascending" ? "descending" : "ascending";
            heads.forEach((other) => other.setAttribute("aria-sort", "none"));
            head.setAttribute("aria-sort", next);
            sort(column, next === "ascending" ? 1 : -1);
        });
    });

    const filter = () => {
        const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
        let count = 0, bytes = 0;
        for (const entry of rows) {
            const fits = (!family.value || entry.family === family.value) && wanted.every((w) => entry.text.includes(w));
            entry.row.hidden = !fits;
            count += fits;
            bytes += fits ? entry.bytes : 0;
        }
        shown.value = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} variants, ` +
            `${bytes.toLocaleString("en")} bytes`;
    };
    words.addEventListener("input", filter);
    family.addEventListener("change", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    filter();
})();
