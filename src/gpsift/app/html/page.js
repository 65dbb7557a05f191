"use strict";
(() => {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const rows = data.rows;
  const byId = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Tables: a heading sorts by its column, a second time the other way round. Cells without a value stay last.

  const cellValue = (row, column) => {
    const raw = row.cells[column].dataset.value;
    if (raw === "") return null;
    const value = Number(raw);
    return Number.isNaN(value) ? raw.toLowerCase() : value;
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  const sortBy = (table, head) => {
    const column = head.cellIndex;
    // Names and places start from the front, scores from the largest.
    const startsUp = head.classList.contains("text") || column === 0;
    const now = head.getAttribute("aria-sort");
    const up = now === "none" ? startsUp : now !== "ascending";
    for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const lines = [...body.rows].map((row, place) => ({ row, place, value: cellValue(row, column) }));
    lines.sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      return (up ? 1 : -1) * compare(a.value, b.value) || a.place - b.place;
    });
    body.append(...lines.map((line) => line.row));
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      head.querySelector("button").addEventListener("click", () => sortBy(table, head));
    }
  }
  // Words of the field: a question mark shows what they mean.
  for (const button of document.querySelectorAll("button.ask")) {
    button.addEventListener("click", () => {
      const meaning = byId(button.getAttribute("aria-controls"));
      meaning.hidden = !meaning.hidden;
      button.setAttribute("aria-expanded", String(!meaning.hidden));
    });
  }
  const shorten = (table, button) => {
    if (!table || !button) return;
    table.classList.add("short");
    button.hidden = false;
    button.addEventListener("click", () => {
      table.classList.remove("short");
      button.hidden = true;
    });
  };
  shorten(byId("relevance-table"), byId("relevance-more"));
  shorten(byId("stability-table"), byId("stability-more"));
  shorten(byId("tests-table"), byId("tests-more"));
  shorten(byId("compared-table"), byId("compared-more"));

  // One row: what its prediction reacts to.

  const FIRST = 12;
  const shown = { row: 0, all: false };
  // As many places as the largest relevance has for three digits, so that columns of numbers line up.
  const places = rows ? Math.max(0, 2 - Math.floor(Math.log10(rows.largest || 1))) : 0;
  const number = (value) => {
    if (rows.largest >= 1e5 || rows.largest < 1e-3) return value === 0 ? "0" : value.toExponential(2);
    const least = 10 ** -places;
    return value > 0 && value < least / 2 ? `<${least.toFixed(places)}` : value.toFixed(places);
  };
  const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
  const nameOf = (j) => {
    const name = make("span", "name", rows.short[j]);
    if (rows.short[j] !== rows.names[j]) name.title = rows.names[j];
    return name;
  };
  const barOf = (relevance, average, share) => {
    const bar = make("span", "bar");
    bar.setAttribute("aria-hidden", "true");
    const width = (100 * relevance) / (rows.largest || 1);
    const parts = share === null ? [["mean", 1]] : [["mean", share], ["variance", 1 - share]];
    for (const [part, of] of parts) bar.append(make("i", part)), (bar.lastChild.style.width = `${width * of}%`);
    const line = make("i", "average");
    line.style.left = `${(100 * average) / (rows.largest || 1)}%`;
    bar.append(line);
    return bar;
  };
  const signed = (value) => `${value < 0 ? "−" : "+"}${Number(Math.abs(value).toPrecision(3))}`;
  // What a column adds: a bar from the middle, to the right for more and to the left for less.
  const addsOf = (value, sd) => {
    const cell = make("td", "adds");
    const bar = make("span", "bar sides");
    bar.setAttribute("aria-hidden", "true");
    const part = make("i", value < 0 ? "variance" : "mean");
    const width = (50 * Math.abs(value)) / (rows.largestAdded || 1);
    part.style.width = `${width}%`;
    part.style.left = `${value < 0 ? 50 - width : 50}%`;
    bar.append(part);
    cell.dataset.kept = JSON.stringify({ "": value, sd });
    cell.append(make("span", "figure", `${signed(value)}\u00a0±\u00a0${Number(sd.toPrecision(2))}`), bar);
    return cell;
  };
  const explain = () => {
    const i = shown.row;
    byId("row").value = String(i);
    const text = make("p");
    text.append(make("strong", "", `Row ${rows.labels[i]}`), `: predicted ${rows.predictions[i]}; observed ${rows.observed[i]}.`);
    byId("row-answer").replaceChildren(text);
    if (rows.sums) byId("row-answer").append(make("p", "sum", rows.sums[i]));
    const sizes = rows.added ? rows.added.map((line) => Math.abs(line[i])) : rows.relevance.map((line) => line[i]);
    const order = rows.names.map((_, j) => j).sort((a, b) => sizes[b] - sizes[a]);
    const figure = (value, text) => {
      const cell = make("td", "number", text);
      cell.dataset.value = value;
      return cell;
    };
    const lines = order.map((j, place) => {
      const line = make("tr");
      line.hidden = !shown.all && place >= FIRST;
      const head = make("th", "text");
      head.dataset.value = rows.names[j];
      head.scope = "row";
      head.append(nameOf(j));
      const relevance = rows.relevance[j][i];
      const share = rows.meanShare === null ? null : rows.meanShare[j][i];
      const bars = make("td", "bars");
      bars.dataset.value = relevance;
      bars.append(make("span", "figure", number(relevance)), barOf(relevance, rows.average[j], share));
      line.append(head, make("td", "text", rows.values[j][i]));
      if (rows.added) line.append(addsOf(rows.added[j][i], rows.addedSd[j][i]));
      line.append(bars, figure(rows.average[j], number(rows.average[j])));
      if (share !== null) line.append(figure(share, percent(share)), figure(Number((1 - share).toFixed(2)), percent(1 - share)));
      return line;
    });
    byId("row-table").tBodies[0].replaceChildren(...lines);
    byId("row-before").disabled = i === 0;
    byId("row-after").disabled = i === rows.labels.length - 1;
  };
  const pick = (i) => {
    shown.row = Math.min(Math.max(i, 0), rows.labels.length - 1);
    explain();
  };
  if (rows) {
    const options = rows.labels.map((label, i) => {
      const option = make("option", "", label);
      option.value = String(i);
      return option;
    });
    byId("row").append(...options);
    byId("row").addEventListener("change", (event) => pick(Number(event.target.value)));
    byId("row-before").addEventListener("click", () => pick(shown.row - 1));
    byId("row-after").addEventListener("click", () => pick(shown.row + 1));
    byId("picker").addEventListener("submit", (event) => event.preventDefault());
    byId("picker").hidden = byId("row-box").hidden = false;
    if (rows.names.length > FIRST) {
      byId("row-more").hidden = false;
      byId("row-more").addEventListener("click", () => {
        shown.all = true;
        byId("row-more").hidden = true;
        explain();
      });
    }
    explain();
  }

  // Pictures: colours of the style sheet, names that fit, and words for the dot that is pointed at.

  const tip = byId("tip");
  const say = (title, text, at) => {
    tip.replaceChildren(make("strong", "", title), text);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(at.x + 14, window.innerWidth - box.width - 8))}px`;
    tip.style.top = `${at.y + box.height + 24 > window.innerHeight ? at.y - box.height - 12 : at.y + 16}px`;
  };
  const words = (name, source, index) => {
    if (name !== "strips") {
      const [title, ...rest] = source.data.tip[index].split("\n");
      return [title, rest.join("\n")];
    }
    const n = rows.labels.length;
    const [j, i] = [Math.floor(index / n), index % n];
    const lines = [
      `${rows.short[j]} = ${rows.values[j][i]}`,
      `relevance ${number(rows.relevance[j][i])}, on average ${number(rows.average[j])}`,
      `predicted ${rows.predictions[i]}`,
      `observed ${rows.observed[i]}`,
    ];
    return [`Row ${rows.labels[i]}`, lines.join("\n")];
  };
  const drawn = [];
  const colour = (palette = "") => {
    const style = getComputedStyle(document.documentElement);
    for (const { models } of drawn) {
      for (const model of models) {
        for (const roles of model.tags) {
          if (typeof roles !== "object" || "wide" in roles) continue;
          const values = {};
          for (const [property, role] of Object.entries(roles)) values[property] = style.getPropertyValue(`--${palette}${role}`).trim();
          model.setv(values);
        }
      }
    }
  };
  const NARROW = 560;
  const fit = () => {
    for (const { target, models } of drawn) {
      const narrow = target.clientWidth < NARROW;
      for (const model of models) {
        for (const names of model.tags) {
          if (typeof names !== "object" || !("wide" in names)) continue;
          const labels = narrow ? names.narrow : names.wide;
          model.setv({ major_label_overrides: new Map(labels.map((label, place) => [place, label])) });
        }
      }
    }
  };
  const attend = (name, target, models) => {
    const dots = models.find((model) => model.name === "dots");
    if (!dots) return;
    const source = dots.data_source;
    let pointer = { x: 0, y: 0, isMouse: true };
    for (const kind of ["pointermove", "pointerdown"]) {
      const follow = ({ clientX: x, clientY: y, pointerType }) => (pointer = { x, y, isMouse: pointerType === "mouse" });
      target.addEventListener(kind, follow, true);
    }
    // A finger leaves as soon as it has tapped; what it asked for stays until the page scrolls.
    const leave = () => pointer.isMouse && (tip.hidden = true);
    target.addEventListener("pointerleave", leave);
    const look = () => {
      const index = source.inspected.indices[0];
      if (index === undefined) leave();
      else say(...words(name, source, index), pointer);
    };
    source.inspect.connect(look);
    if (name === "strips") {
      source.selected.properties.indices.change.connect(() => {
        const index = source.selected.indices[0];
        if (index === undefined) return;
        pick(index % rows.labels.length);
        say(...words(name, source, index), pointer);
      });
    }
  };
  const draw = async () => {
    for (const [name, item] of Object.entries(data.figures)) {
      const target = byId(item.target_id);
      const view = (await Bokeh.embed.embed_item(item)).roots[0];
      const models = [...view.model.references()];
      drawn.push({ target, view, models });
      target.dispatchEvent(new CustomEvent("drawn", { detail: view, bubbles: true }));
      attend(name, target, models);
    }
    colour();
    fit();
    document.documentElement.dataset.drawn = "yes";
  };
  // Paper is light whatever the screen is, and narrower: copies of the pictures are printed in their place. They are
  // made at once, because printing does not wait, and once more when the pictures have taken all of their new colours.
  let isPrinting = false;
  const copyPictures = () => {
    for (const { target, view } of drawn) {
      const copy = view.export("png").canvas;
      copy.className = "printed";
      copy.removeAttribute("style");
      for (const old of target.parentElement.querySelectorAll("canvas.printed")) old.remove();
      target.after(copy);
    }
  };
  const beforePrint = async () => {
    isPrinting = true;
    colour("light-");
    copyPictures();
    await Promise.all(drawn.map(({ view }) => view.ready));
    if (isPrinting) copyPictures();
  };
  const afterPrint = () => {
    isPrinting = false;
    colour();
  };
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colour());
  window.matchMedia("print").addEventListener("change", (media) => (media.matches ? beforePrint() : afterPrint()));
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  window.addEventListener("resize", fit);
  window.addEventListener("scroll", () => (tip.hidden = true), { passive: true });
  draw();
})();
