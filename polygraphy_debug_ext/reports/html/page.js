/* Puts the parts of the page to work. */

function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
        head.querySelector("button").addEventListener("click", () => {
            const descending = head.getAttribute("aria-sort") === "ascending" ||
                (head.getAttribute("aria-sort") === null && head.classList.contains("number") && column > 0);
            heads.forEach((each) => each.removeAttribute("aria-sort"));
            head.setAttribute("aria-sort", descending ? "descending" : "ascending");
            const rows = [...table.tBodies[0].rows].sort((a, b) => (descending ? -1 : 1) * compare(a.cells[column], b.cells[column]));
            table.tBodies[0].append(...rows);
        });
    });
    heads[0].setAttribute("aria-sort", "ascending");
}

function compare(a, b) {
    if (a.dataset.value === undefined) return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
    const [left, right] = [a, b].map((cell) => (cell.dataset.value === "inf" ? Infinity : Number(cell.dataset.value)));
    return left === right ? 0 : left < right ? -1 : 1;
}

function filterTrials(form) {
    const rows = form.parentElement.querySelectorAll("tbody tr");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
        const wanted = form.elements.verdict.value;
        for (const row of rows) row.hidden = wanted !== "" && row.dataset.verdict !== wanted;
    });
}

{
    const data = JSON.parse(document.getElementById("data").textContent);
    const maps = [...document.querySelectorAll("[data-map]")].map((section) => new LayerMap(section, new MapData(data[section.dataset.map])));
    document.querySelectorAll("table.sortable").forEach(sortable);
    document.querySelectorAll(".trial-filter").forEach(filterTrials);
    window.addEventListener("beforeprint", () => maps.forEach((map) => map.print()));
    document.documentElement.dataset.ready = Math.round(performance.now());
}
