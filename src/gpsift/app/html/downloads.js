"use strict";
// Every table as CSV and JSON, every picture as PNG and SVG, the code as text: made here, asked of nowhere.
(() => {
  const make = (tag, className, text) => Object.assign(document.createElement(tag), { className, textContent: text });
  const fileName = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").toLowerCase();
  const about = fileName(document.title);
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

  // A cell is what it says is to be kept, by the ends of names; or what it sorts by; or else its words.
  const plain = (text) => text.replace(/\s+/g, " ").trim();
  const valueOf = (cell) => {
    const raw = cell.dataset.value ?? plain(cell.textContent);
    const figure = raw.replace("−", "-");
    return raw !== "" && !Number.isNaN(Number(figure)) && !cell.matches("th") ? Number(figure) : raw;
  };
  const keptOf = (cell, head) =>
    cell.dataset.kept ? Object.entries(JSON.parse(cell.dataset.kept)).map(([end, value]) => [`${head} ${end}`.trim(), value]) : [[head, valueOf(cell)]];
  const linesOf = (table) => {
    const heads = [...table.tHead.rows[0].cells].map((head) => plain((head.querySelector("button") ?? head).textContent));
    return [...table.tBodies[0].rows].map((row) => Object.fromEntries([...row.cells].flatMap((cell, j) => keptOf(cell, heads[j]))));
  };
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  const asCsv = (lines) => {
    const heads = [...new Set(lines.flatMap((line) => Object.keys(line)))];
    return [heads, ...lines.map((line) => heads.map((head) => line[head]))].map((cells) => cells.map(quoted).join(",") + "\r\n").join("");
  };
  const asJson = (lines) => JSON.stringify(lines, (_, value) => (value === "" ? null : value), 1);
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
  const draw = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const SPACE = 22;
  const lettering = () => ({ fill: getComputedStyle(document.body).color, "font-family": "sans-serif", "font-size": 14 });
  // What stands above a picture on the page does not travel with it.
  const below = (title, svg) => {
    const picture = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    const [width, height] = ["width", "height"].map((side) => Number(picture.getAttribute(side)));
    const whole = draw("svg", { width, height: height + SPACE });
    picture.setAttribute("y", SPACE);
    whole.append(draw("text", { x: 6, y: 16, ...lettering() }, title), picture);
    return new XMLSerializer().serializeToString(whole);
  };
  const withPaper = (svg) => svg.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${paper()}"/>`);
  // Twice as many points as on the screen, so that it can be shown larger.
  const pointsOf = (svg) =>
    new Promise((done) => {
      const { width, height } = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement.attributes;
      const image = new Image();
      image.onload = () => done(onPaper(2 * width.value, 2 * height.value, image));
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
    });
  const pictures = (name, drawn) => ({
    PNG: async () => keep(`${name}.png`, await pointsOf(await drawn())),
    SVG: async () => keep(`${name}.svg`, await drawn(), "image/svg+xml"),
  });
  document.addEventListener("drawn", ({ target, detail: view }) => {
    const [name, { column }] = [target.id.replace("figure-", ""), target.dataset];
    const exported = async () => (await view.export("svg").to_blob()).text();
    const drawn = async () => withPaper(column ? below(column, await exported()) : await exported());
    const file = [name, fileName(column ?? "")].filter(Boolean).join("-");
    offer(target.parentElement.querySelector("figcaption:last-child") ?? target, `The picture ${name}`, pictures(file, drawn));
  });
  // A picture without a script takes its colours from the style sheet and its names from a list, which do not travel with it.
  const alone = (svg, parts) => {
    const { width, height } = svg.getBoundingClientRect();
    const whole = draw("svg", { xmlns: "http://www.w3.org/2000/svg", width, height: height + SPACE * (parts.length + 1) });
    const bars = draw("svg", { width, height, viewBox: svg.getAttribute("viewBox"), preserveAspectRatio: "none" });
    whole.append(bars);
    [...svg.children].forEach((child, place) => {
      const bar = child.cloneNode();
      const [fill, opacity, y] = [getComputedStyle(child).fill, child.getAttribute("opacity"), height + SPACE * (place + 1)];
      bar.setAttribute("fill", fill);
      bars.append(bar);
      whole.append(draw("rect", { x: 0, y: y - 11, width: 12, height: 12, fill, opacity }));
      whole.append(draw("text", { x: SPACE, y, ...lettering() }, plain(parts[place].textContent)));
    });
    return withPaper(whole.outerHTML);
  };
  for (const svg of document.querySelectorAll("svg.stack")) {
    const list = document.getElementById("shares");
    const shares = [...list.children].map(({ dataset }) => ({ part: dataset.name, share: Number(dataset.share) }));
    offer(list, "The shares of the variance", {
      ...pictures("shares", async () => alone(svg, [...list.children])),
      CSV: () => keep("shares.csv", asCsv(shares), "text/csv;charset=utf-8"),
      JSON: () => keep("shares.json", asJson(shares), "application/json"),
    });
  }

  for (const code of document.querySelectorAll("pre[data-name]")) {
    offer(code, "The code that repeats it", { Code: () => keep(code.dataset.name, `${code.textContent}\n`, "text/plain;charset=utf-8") });
  }
})();
