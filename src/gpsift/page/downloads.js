"use strict";
// Every table as CSV and JSON, every picture as PNG and SVG, the code as text: made here, asked of nowhere.
(() => {
  const make = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text });
  const about = document.title.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase();
  const keep = (name, content, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = `${about}-${name}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const offer = (after, what, choices) => {
    const line = make("p", "downloads", "");
    for (const [kind, act] of Object.entries(choices)) {
      const button = make("button", "download", kind);
      button.type = "button";
      button.setAttribute("aria-label", `${what} as ${kind}`);
      button.addEventListener("click", act);
      line.append(button);
    }
    after.after(line);
  };

  // A cell is what it sorts by, where it says so, and its words otherwise.
  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const valueOf = (cell) => {
    const raw = cell.dataset.value ?? plain(cell.textContent);
    return raw !== "" && !Number.isNaN(Number(raw)) && !cell.matches("th") ? Number(raw) : raw;
  };
  const linesOf = (table) => ({
    heads: [...table.tHead.rows[0].cells].map((head) => plain((head.querySelector("button") ?? head).textContent)),
    lines: [...table.tBodies[0].rows].map((row) => [...row.cells].map(valueOf)),
  });
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const asCsv = ({ heads, lines }) => [heads, ...lines].map((line) => line.map(quoted).join(",") + "\r\n").join("");
  const asJson = ({ heads, lines }) =>
    JSON.stringify(lines.map((line) => Object.fromEntries(line.map((value, j) => [heads[j], value === "" ? null : value]))), null, 1);
  for (const table of document.querySelectorAll("table[id]")) {
    const name = table.id.replace("-table", "");
    offer(table.closest(".scroll") ?? table, `The table ${name}`, {
      CSV: () => keep(`${name}.csv`, asCsv(linesOf(table)), "text/csv;charset=utf-8"),
      JSON: () => keep(`${name}.json`, asJson(linesOf(table)), "application/json"),
    });
  }

  // Pictures have the colours and the paper that they have on the screen.
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const onPaper = (width, height, image) => {
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d");
    context.fillStyle = paper();
    context.fillRect(0, 0, width, height);
    context.drawImage(image, 0, 0, width, height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };
  const withPaper = (svg) => svg.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${paper()}"/>`);
  document.addEventListener("drawn", ({ target, detail: view }) => {
    const name = target.id.replace("figure-", "");
    offer(target.parentElement.querySelector("figcaption:last-child") ?? target, `The picture ${name}`, {
      PNG: async () => {
        const { canvas } = view.export("png");
        keep(`${name}.png`, await onPaper(canvas.width, canvas.height, canvas));
      },
      SVG: async () => {
        const drawn = await view.export("svg").to_blob();
        keep(`${name}.svg`, withPaper(await drawn.text()), "image/svg+xml");
      },
    });
  });
  // A picture without a script takes its colours from the style sheet, which does not travel with it.
  const alone = (svg) => {
    const copy = svg.cloneNode(true);
    const { width, height } = svg.getBoundingClientRect();
    for (const [name, value] of [["xmlns", "http://www.w3.org/2000/svg"], ["width", width], ["height", height]]) copy.setAttribute(name, value);
    [...svg.children].forEach((child, place) => copy.children[place].setAttribute("fill", getComputedStyle(child).fill));
    return { text: withPaper(copy.outerHTML), width, height };
  };
  const drawnOf = ({ text, width, height }) =>
    new Promise((done) => {
      const image = new Image();
      image.onload = () => done(onPaper(2 * width, 2 * height, image));
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  for (const svg of document.querySelectorAll("svg.stack")) {
    const parts = document.getElementById("shares");
    const shares = { heads: ["part", "share"], lines: [...parts.children].map(({ dataset }) => [dataset.name, Number(dataset.share)]) };
    offer(parts, "The shares of the variance", {
      PNG: async () => keep("shares.png", await drawnOf(alone(svg))),
      SVG: () => keep("shares.svg", alone(svg).text, "image/svg+xml"),
      CSV: () => keep("shares.csv", asCsv(shares), "text/csv;charset=utf-8"),
      JSON: () => keep("shares.json", asJson(shares), "application/json"),
    });
  }

  for (const code of document.querySelectorAll("pre[data-name]")) {
    offer(code, "The code that repeats it", { Code: () => keep(code.dataset.name, `${code.textContent}\n`, "text/plain;charset=utf-8") });
  }
})();
