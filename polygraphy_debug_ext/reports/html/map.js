/* The map of layers x builds: a table that has rows and columns only for what is in view. */

const ROW = 22;
const COLUMN = 22;
const FIRST_COLUMN = 300;
const HEAD = 2;
const SPARE_ROWS = 12;
const SPARE_COLUMNS = 20;
const PRINTED_LAYERS = 40;
const PRINTED_BUILDS = 24;
const PRINTED_BLOCKS = 5;

class LayerMap {
    constructor(section, data) {
        this.section = section;
        this.data = data;
        this.id = section.dataset.map;
        this.viewport = section.querySelector(".viewport");
        this.grid = section.querySelector("[role=grid]");
        this.details = section.querySelector(".details");
        this.spoken = section.querySelector("[data-spoken]");
        this.form = section.querySelector("form");
        this.chosen = { row: 0, column: 0 };
        this.drawn = null;
        // Where nothing varies, there is still something to see.
        if (!data.layers.some((layer) => layer.varies)) this.form.elements.varying.checked = false;
        this.form.addEventListener("submit", (event) => event.preventDefault());
        this.form.addEventListener("input", () => this.select());
        this.viewport.addEventListener("scroll", () => this.draw(), { passive: true });
        new ResizeObserver(() => this.draw()).observe(this.viewport);
        this.grid.addEventListener("keydown", (event) => this.onKey(event));
        this.grid.addEventListener("focus", () => this.choose(this.chosen.row, this.chosen.column));
        this.viewport.addEventListener("click", (event) => this.onClick(event));
        this.viewport.addEventListener("pointerover", (event) => this.onPointer(event));
        this.select();
    }

    select() {
        const { filter, varying, order } = this.form.elements;
        this.rows = this.data.select({ filter: filter.value, varying: varying.checked, order: order.value });
        const all = this.data.layers.length;
        const varies = this.data.layers.filter((layer) => layer.varies).length;
        this.form.elements.shown.textContent =
            `${this.rows.length} of ${all} layers shown; ${varies} vary, ${all - varies} are the same in every build`;
        this.chosen.row = Math.max(0, Math.min(this.chosen.row, this.rows.length - 1));
        this.drawn = null;
        this.viewport.scrollTop = 0;
        this.draw();
        this.explain();
    }

    firstColumn() {
        return Math.min(FIRST_COLUMN, Math.round(this.viewport.clientWidth * 0.45));
    }

    /* What of the table is in view, and a little more. */
    window() {
        const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.viewport;
        const top = Math.floor(scrollTop / ROW);
        const left = Math.floor(scrollLeft / COLUMN);
        return {
            top: Math.max(0, top - SPARE_ROWS),
            bottom: Math.min(this.rows.length, top + Math.ceil(clientHeight / ROW) + SPARE_ROWS),
            left: Math.max(0, left - SPARE_COLUMNS),
            right: Math.min(this.data.builds.length, left + Math.ceil(clientWidth / COLUMN) + SPARE_COLUMNS),
            width: this.firstColumn(),
            whole: clientWidth,
        };
    }

    isDrawn(wanted) {
        const drawn = this.drawn;
        if (!drawn || drawn.whole !== wanted.whole) return false;
        const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.viewport;
        return (
            (drawn.top === 0 || drawn.top * ROW <= scrollTop - ROW) &&
            (drawn.bottom === this.rows.length || drawn.bottom * ROW >= scrollTop + clientHeight) &&
            (drawn.left === 0 || drawn.left * COLUMN <= scrollLeft - COLUMN) &&
            (drawn.right === this.data.builds.length || drawn.right * COLUMN >= scrollLeft + clientWidth)
        );
    }

    draw() {
        const wanted = this.window();
        if (this.isDrawn(wanted)) return;
        this.drawn = wanted;
        const body = element("tbody");
        body.append(this.spacer(wanted.top));
        for (let row = wanted.top; row < wanted.bottom; row++) body.append(this.row(row));
        body.append(this.spacer(this.rows.length - wanted.bottom));
        this.grid.setAttribute("aria-rowcount", this.rows.length + HEAD);
        this.grid.setAttribute("aria-colcount", this.data.builds.length + 1);
        this.grid.replaceChildren(this.columns(), this.head(), body);
        this.point();
    }

    columns() {
        const { left, right, width } = this.drawn;
        const widths = [width, left * COLUMN];
        for (let column = left; column < right; column++) widths.push(COLUMN);
        const used = width + this.data.builds.length * COLUMN;
        // What is the same in every build may fill the window.
        const free = Math.max(0, this.viewport.clientWidth - used);
        widths.push((this.data.builds.length - right) * COLUMN + free);
        // Without a width of its own the table would be as wide as its longest name.
        this.grid.style.width = `${used + free}px`;
        return element("colgroup", {}, ...widths.map((each) => {
            const column = element("col");
            column.style.width = `${each}px`;
            return column;
        }));
    }

    spacer(rows) {
        const row = element("tr", { class: "spacer", "aria-hidden": "true" }, element("td"));
        row.style.height = `${rows * ROW}px`;
        return row;
    }

    /* Two rows: bad and good, then the builds. */
    head() {
        const { left, right } = this.drawn;
        const { builds, good, bad } = this.data;
        const sides = [
            ["Bad builds", bad, Math.min(right, bad) - Math.min(left, bad), ""],
            ["Good builds", good, Math.max(right, bad) - Math.max(left, bad), bad ? "first-good" : ""],
        ];
        const upper = element("tr", { "aria-rowindex": 1 }, element("td", { "aria-hidden": "true" }));
        upper.replaceChildren(element("th", { scope: "col", rowspan: 1, text: "Layer" }), element("th", { "aria-hidden": "true" }));
        for (const [name, number, span, edge] of sides) {
            if (span === 0) continue;
            const cell = element("th", { scope: "colgroup", colspan: span, class: edge });
            cell.append(element("span", { text: span > 4 ? `${name} (${number})` : span > 1 ? name.split(" ")[0] : name[0], title: `${name} (${number})` }));
            upper.append(cell);
        }
        const lower = element("tr", { "aria-rowindex": 2 }, element("th", { "aria-hidden": "true" }), element("th", { "aria-hidden": "true" }));
        for (let column = left; column < right; column++) {
            const build = builds[column];
            lower.append(element("th", {
                scope: "col", text: build.label.replace(/^N/, ""), title: build.name, "aria-label": `${build.bad ? "bad" : "good"} ${build.label}`, "aria-colindex": column + 2, class: this.edge(column),
            }));
        }
        return element("thead", {}, upper, lower);
    }

    edge(column) {
        return column === this.data.bad && column > 0 ? "first-good" : "";
    }

    row(number) {
        const layer = this.rows[number];
        const { left, right } = this.drawn;
        const head = element("th", { scope: "row", id: this.cellId(number, 0), title: layer.name, "aria-colindex": 1 }, element("bdi", { text: layer.name }));
        const row = element("tr", { "aria-rowindex": number + 1 + HEAD }, head);
        if (!layer.varies) {
            const text = layer.tactics.length ? `the same in every build: ${this.data.name(layer, 0)}` : "in no build";
            row.append(element("td", { class: "same", colspan: right - left + 2, text, title: text, id: this.cellId(number, 1), "aria-colindex": 2 }));
            return row;
        }
        row.append(element("td", { "aria-hidden": "true" }));
        for (let column = left; column < right; column++) {
            row.append(this.cell(layer, column, { id: this.cellId(number, column + 1), "aria-colindex": column + 2 }));
        }
        return row;
    }

    cell(layer, column, attributes) {
        const code = this.data.code(layer, column);
        const edge = this.edge(column);
        if (code < 0) return element("td", { ...attributes, class: `absent ${edge}`, text: "·", "aria-label": "does not have the layer" });
        const mark = layer.tactics[code][5];
        const text = letters(code);
        const spoken = mark === 2 ? `${text}, named by the verdict` : mark === 1 ? `${text}, suspect` : "";
        return element("td", { ...attributes, class: `${colour(code)} ${mark ? `mark${mark}` : ""} ${edge}`, text, "aria-label": spoken });
    }

    /* Column 0 is the name of the layer; a row that is the same in every build has one cell beside it. */
    cellId(row, column) {
        return `map-${this.id}-${row}-${column}`;
    }

    onKey(event) {
        const { row, column } = this.chosen;
        const page = Math.max(1, Math.floor(this.viewport.clientHeight / ROW) - HEAD - 1);
        const lastRow = this.rows.length - 1;
        const lastColumn = this.data.builds.length;
        const whole = event.ctrlKey || event.metaKey;
        const moves = {
            ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
            PageUp: [row - page, column], PageDown: [row + page, column],
            Home: [whole ? 0 : row, 0], End: [whole ? lastRow : row, lastColumn],
        };
        if (!(event.key in moves) || event.altKey || !this.rows.length) return;
        event.preventDefault();
        this.choose(...moves[event.key]);
    }

    onClick(event) {
        const cell = event.target.closest("tbody [id]");
        if (!cell) return;
        const [row, column] = cell.id.split("-").slice(-2).map(Number);
        this.grid.focus({ preventScroll: true });
        this.choose(row, column);
    }

    /* Titles are made when they are wanted: most cells are never pointed at. */
    onPointer(event) {
        const cell = event.target.closest("tbody td[id]");
        if (!cell || cell.title) return;
        const [row, column] = cell.id.split("-").slice(-2).map(Number);
        const layer = this.rows[row];
        const code = this.data.code(layer, column - 1);
        cell.title = code < 0 ? `${layer.name}: not in this build` : `${layer.name}: ${letters(code)}: ${this.data.name(layer, code)}`;
    }

    choose(row, column) {
        if (!this.rows.length) return;
        this.chosen.row = Math.max(0, Math.min(row, this.rows.length - 1));
        this.chosen.column = Math.max(0, Math.min(column, this.data.builds.length));
        this.reveal();
        this.draw();
        this.point();
        this.explain();
    }

    /* Scroll so that the chosen cell is not under the heads and not outside. */
    reveal() {
        const { row, column } = this.chosen;
        const view = this.viewport;
        const below = (row + 1 + HEAD) * ROW - view.clientHeight;
        view.scrollTop = Math.max(Math.min(view.scrollTop, row * ROW), below + ROW / 2);
        if (column === 0 || !this.rows[row].varies) return;
        const right = this.firstColumn() + column * COLUMN - view.clientWidth;
        view.scrollLeft = Math.max(Math.min(view.scrollLeft, (column - 1) * COLUMN), right + COLUMN / 2);
    }

    point() {
        this.grid.querySelector(".chosen")?.classList.remove("chosen");
        const layer = this.rows[this.chosen.row];
        const column = layer && !layer.varies ? Math.min(this.chosen.column, 1) : this.chosen.column;
        const cell = layer && document.getElementById(this.cellId(this.chosen.row, column));
        if (cell) {
            cell.classList.add("chosen");
            this.grid.setAttribute("aria-activedescendant", cell.id);
        } else {
            this.grid.removeAttribute("aria-activedescendant");
        }
    }

    /* Say in words what the chosen cell holds. */
    explain() {
        const layer = this.rows[this.chosen.row];
        if (!layer) {
            this.details.replaceChildren(element("p", { text: "No layer fits. Change the filter, or show also the layers that do not vary." }));
            this.spoken.textContent = "";
            return;
        }
        const build = this.data.builds[this.chosen.column - 1];
        const code = build ? this.data.code(layer, this.chosen.column - 1) : null;
        this.details.replaceChildren(...this.heading(build), this.legend(layer, code));
        const has = code === null ? "" : code < 0 ? "does not have the layer" : `${letters(code)}: ${this.data.name(layer, code)}`;
        this.spoken.textContent = build ? `${build.label}, ${build.bad ? "bad" : "good"}, ${layer.name}: ${has}` : layer.name;
    }

    heading(build) {
        const layer = this.rows[this.chosen.row];
        const line = element("p", {}, element("b", { text: layer.name }));
        if (build) {
            line.append(` in ${build.bad ? "bad" : "good"} build `);
            line.append(build.url ? element("a", { href: build.url, text: build.name }) : build.name);
            if (build.trial) line.append(" (", element("a", { href: `#${build.trial}`, text: `trial ${build.label}` }), ")");
        }
        return [line];
    }

    legend(layer, code) {
        const { good, bad } = this.data;
        const body = element("tbody");
        layer.tactics.slice(0, 40).forEach((_, each) => {
            const tactic = this.data.tactic(layer, each);
            const suspect = tactic.mark === 2 ? "named by the verdict" : tactic.mark === 1 ? "suspect" : "";
            const likely = tactic.probability === null ? "" : percent(tactic.probability);
            body.append(element("tr", { class: each === code ? "here" : "" },
                element("td", {}, element("b", { class: `key ${tactic.mark === 2 ? "mark2" : colour(each)} ${tactic.mark === 1 ? "mark1" : ""}`, text: letters(each) })),
                element("th", { scope: "row", title: tactic.details },
                    element("span", { class: "name", text: `${tactic.kernel || "(kernel not known)"} ${tactic.id}` })),
                element("td", { text: `${tactic.good} of ${good}` }), element("td", { text: `${tactic.bad} of ${bad}` }),
                element("td", { text: [likely, suspect].filter(Boolean).join(", ") })));
        });
        const titles = ["", "Kernel and tactic", "Good builds", "Bad builds", "Probability"];
        return element("table", {}, element("thead", {}, element("tr", {}, ...titles.map((text) => element("th", { scope: "col", text })))), body);
    }

    /* For paper: the first layers in the present order, in blocks of builds that fit the width of a page. */
    print() {
        const shown = this.rows.filter((layer) => layer.varies).slice(0, PRINTED_LAYERS);
        const blocks = [];
        const builds = this.data.builds.slice(0, PRINTED_BUILDS * PRINTED_BLOCKS);
        for (let left = 0; left < builds.length; left += PRINTED_BUILDS) {
            const columns = builds.slice(left, left + PRINTED_BUILDS).map((_, each) => left + each);
            const head = columns.map((column) => {
                const { label, bad } = this.data.builds[column];
                return element("th", { scope: "col", text: `${bad ? "bad" : "good"} ${label}`, class: this.edge(column) });
            });
            const body = shown.map((layer) => element("tr", {},
                element("th", { scope: "row", text: layer.name }), ...columns.map((column) => this.cell(layer, column, {}))));
            blocks.push(element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col", text: "Layer" }), ...head)), element("tbody", {}, ...body)));
        }
        const varying = this.data.layers.filter((layer) => layer.varies).length;
        const text = `${shown.length} of ${varying} layers that vary (of ${this.data.layers.length} layers), in the order of the page; ` +
            `${builds.length} of ${this.data.builds.length} builds.`;
        this.section.querySelector(".printed").replaceChildren(element("p", { text }), ...blocks);
    }
}
