"use strict";
/* What html_map.py wrote, made readable: layers, their choices, and which choice a build has (-1: it does not have the layer). */

const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

class MapData {
    constructor(raw) {
        this.texts = raw.texts;
        this.builds = raw.builds.map(([label, name, bad, url, trial]) => ({ label, name, bad: bad === 1, url, trial }));
        this.good = this.builds.filter((build) => !build.bad).length;
        this.bad = this.builds.length - this.good;
        this.layers = raw.layers.map((layer, number) => ({
            number, name: layer.n, rank: layer.r, width: layer.w, cells: layer.c, tactics: layer.t,
            varies: layer.c !== "", text: null,
        }));
    }

    code(layer, build) {
        if (!layer.varies) return layer.tactics.length ? 0 : -1;
        let code = 0;
        for (let place = build * layer.width; place < (build + 1) * layer.width; place++) {
            const digit = DIGITS.indexOf(layer.cells[place]);
            if (digit < 0) return -1;
            code = code * DIGITS.length + digit;
        }
        return code;
    }

    tactic(layer, code) {
        const [kernel, id, details, good, bad, mark, probability] = layer.tactics[code];
        return { kernel: this.texts[kernel], id: this.texts[id], details: this.texts[details], good, bad, mark, probability };
    }

    name(layer, code) {
        const tactic = this.tactic(layer, code);
        return tactic.kernel || tactic.id || "(unnamed)";
    }

    /* The layers to be shown, in the order asked for; every word of the filter must be in the layer or one of its tactics. */
    select({ filter, varying, order }) {
        const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
        const found = this.layers.filter(
            (layer) => (layer.varies || !varying) && words.every((word) => this.searched(layer).includes(word)),
        );
        const last = this.layers.length;
        const rank = (layer) => (order === "network" || layer.rank < 0 ? last : layer.rank);
        return found.sort((a, b) => b.varies - a.varies || rank(a) - rank(b) || a.number - b.number);
    }

    searched(layer) {
        layer.text ??= [layer.name, ...layer.tactics.map(([kernel, id]) => `${this.texts[kernel]} ${this.texts[id]}`)]
            .join("\n").toLowerCase();
        return layer.text;
    }
}

/* A, B, ... Z, AA, AB, ... */
function letters(code) {
    let text = "";
    for (let rest = code + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
        text = String.fromCharCode(65 + ((rest - 1) % 26)) + text;
    }
    return text;
}

function colour(code) {
    return code === 0 ? "t0" : `t${((code - 1) % 6) + 1}`;
}

/* As lines.py has it: what is nearly sure is not called sure. */
function percent(probability) {
    if (probability > 0.9995) return ">99.9%";
    return probability < 0.0005 ? "<0.1%" : `${(100 * probability).toFixed(1)}%`;
}

function element(name, { text, ...attributes } = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (value !== undefined && value !== "") made.setAttribute(key, value);
    }
    if (text !== undefined) made.textContent = text;
    made.append(...children);
    return made;
}
