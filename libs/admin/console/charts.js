"use strict";
// SPDX-License-Identifier: Apache-2.0
// Charts as SVG: stacked areas or layers over time. Colours come from the style by class, so that a theme needs no redrawing.
globalThis.consoleCharts = (() => {
  const { number, secondOf, minuteOf, zoneOf } = globalThis.consoleFormat;
  const space = { top: 12, right: 8, bottom: 22, left: 58 };
  const steps = [5, 15, 30, 60, 120, 300, 600, 900, 1800];

  function svg(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, String(value));
    }
    made.append(...children);
    return made;
  }
  const html = (name, className, ...children) => {
    const made = document.createElement(name);
    made.className = className;
    made.append(...children);
    return made;
  };

  /** Round numbers from 0 to a bit above `most`. */
  function ticksTo(most) {
    const rough = Math.max(most, 1e-9) / 3.2;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough);
    return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (unused, i) => i * step);
  }
  const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : Number(value.toPrecision(3)).toLocaleString("en"));

  /** A line through points [x, y]; where y is null there is a gap. */
  function lines(points) {
    let isOpen = false;
    return points.map(([x, y]) => {
      if (y === null) {
        isOpen = false;
        return "";
      }
      const piece = `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
      isOpen = true;
      return piece;
    }).join("");
  }
  /** The area between two lines, in as many pieces as there are gaps. */
  function area(points, base) {
    const pieces = [];
    let from = 0;
    for (let i = 0; i <= points.length; ++i) {
      if (i === points.length || points[i][1] === null) {
        if (i > from) {
          pieces.push(`${lines(points.slice(from, i))}L${lines(base.slice(from, i).reverse()).slice(1)}Z`);
        }
        from = i + 1;
      }
    }
    return pieces.join("");
  }

  /** Values as they are drawn: on top of each other, or each from 0. */
  function layersOf(series, isStack) {
    let below = series[0].values.map(() => 0);
    return series.map(({ values }) => {
      const base = below;
      const top = values.map((value, i) => (value === null ? null : value + (isStack ? base[i] : 0)));
      if (isStack) {
        below = top.map((value, i) => (value === null ? base[i] : value));
      }
      return { base: isStack ? base : base.map(() => 0), top };
    });
  }

  class Chart {
    constructor(into) {
      this.into = into;
      this.tip = html("div", "tip");
      this.tip.hidden = true;
      this.legend = html("ul", "legend");
      this.plot = html("div", "plot");
      into.replaceChildren(this.plot, this.legend);
      this.pointer = null;
      this.plot.addEventListener("pointermove", (event) => {
        this.pointer = event.clientX - this.plot.getBoundingClientRect().left;
        this.point();
      });
      this.plot.addEventListener("pointerleave", () => {
        this.pointer = null;
        this.point();
      });
      new ResizeObserver(() => this.data && this.plot.clientWidth !== this.width && this.draw()).observe(this.plot);
    }

    /** data: {at, from, to, series: [{name, values, kind}], isStack, unit, empty}; `kind` is the class of a colour. */
    show(data) {
      this.data = data;
      this.draw();
    }

    draw() {
      const { at, from, to, isStack, unit, empty } = this.data;
      const series = this.data.series.filter(({ values }) => values.some((value) => value !== null && value !== 0));
      this.shown = series;
      this.width = this.plot.clientWidth;
      this.height = this.plot.clientHeight;
      this.legend.replaceChildren(...series.map(({ name, values, kind }) => html("li", "", html("span", `swatch ${kind}`),
        `${name} `, html("b", "", values.at(-1) === null ? "–" : `${number(values.at(-1))}${unit}`))));
      if (series.length === 0 || at.length === 0 || this.width === 0) {
        this.plot.replaceChildren(html("p", "is-empty", empty));
        this.cursor = null;
        return;
      }
      const layers = layersOf(series, isStack);
      const most = Math.max(...layers.flatMap(({ top }) => top.filter((value) => value !== null)));
      const ticks = ticksTo(most);
      this.x = (time) => space.left + ((time - from) / (to - from)) * (this.width - space.left - space.right);
      const y = (value) => this.height - space.bottom - (value / ticks.at(-1)) * (this.height - space.top - space.bottom);
      const drawing = svg("svg", { width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}`, role: "img",
        "aria-label": `${this.into.dataset.title}: now ${series.map(({ name, values }) => `${name} ${values.at(-1) === null ? "none" : number(values.at(-1)) + unit}`).join(", ")}`,
        "data-first": at[0], "data-points": at.length });
      for (const tick of ticks) {
        drawing.append(svg("line", { class: "grid", x1: space.left, x2: this.width - space.right, y1: y(tick), y2: y(tick) }),
          svg("text", { class: "axis", x: space.left - 7, y: y(tick) + 4, "text-anchor": "end" }, `${short(tick)}${unit}`));
      }
      drawing.append(...this.timeAxis(from, to));
      const points = (values) => values.map((value, i) => [this.x(at[i]), value === null ? null : y(value)]);
      // What is stacked on top is drawn first, and so are the highest of layers.
      layers.map((layer, i) => [layer, series[i]]).reverse().forEach(([{ base, top }, { kind }]) => drawing.append(
        svg("path", { class: `area ${kind}${isStack ? "" : " is-light"}`, d: area(points(top), points(base)) }),
        svg("path", { class: `line ${kind}`, d: lines(points(top)) })));
      this.cursor = svg("line", { class: "cursor", y1: space.top, y2: this.height - space.bottom });
      drawing.append(this.cursor);
      this.plot.replaceChildren(drawing, this.tip);
      this.point();
    }

    timeAxis(from, to) {
      const most = this.width < 460 ? 4 : 7;
      const step = (steps.find((each) => (to - from) / 1000 / each <= most) || 3600) * 1000;
      const offset = new Date(from).getTimezoneOffset() * 60000;
      const made = [];
      for (let time = Math.ceil((from - offset) / step) * step + offset; time <= to; time += step) {
        const text = step < 60000 ? secondOf(new Date(time)) : minuteOf(new Date(time));
        if (this.x(time) > space.left + 12 && this.x(time) < this.width - 20) {
          made.push(svg("text", { class: "axis", x: this.x(time), y: this.height - 5, "text-anchor": "middle" }, text));
        }
      }
      return made;
    }

    /** Shows what was at the time under the pointer. */
    point() {
      const { at, unit } = this.data;
      const isAway = this.pointer === null || !this.cursor;
      this.tip.hidden = isAway;
      this.cursor?.classList.toggle("is-shown", !isAway);
      if (isAway) {
        return;
      }
      let nearest = 0;
      at.forEach((time, i) => {
        nearest = Math.abs(this.x(time) - this.pointer) < Math.abs(this.x(at[nearest]) - this.pointer) ? i : nearest;
      });
      const x = this.x(at[nearest]);
      this.cursor.setAttribute("x1", x);
      this.cursor.setAttribute("x2", x);
      const date = new Date(at[nearest]);
      this.tip.replaceChildren(html("p", "", `${secondOf(date)} ${zoneOf(date)}`), ...this.shown.map(({ name, values, kind }) =>
        html("p", "", html("span", `swatch ${kind}`), `${name} ${values[nearest] === null ? "–" : `${number(values[nearest])}${unit}`}`)));
      const isRight = x > this.width / 2;
      this.tip.style.left = isRight ? "" : `${x + 10}px`;
      this.tip.style.right = isRight ? `${this.width - x + 10}px` : "";
    }
  }

  /** A small line without axes. */
  function spark(values, kind) {
    const most = Math.max(...values.map((value) => value ?? 0), 1e-9);
    const points = values.map((value, i) => [(i / Math.max(values.length - 1, 1)) * 100, value === null ? null : 27 - (value / most) * 24]);
    return svg("svg", { class: "spark", viewBox: "0 0 100 28", preserveAspectRatio: "none", "aria-hidden": "true" },
      ...(values.length > 1 ? [svg("path", { class: `area is-light ${kind}`, d: area(points, points.map(([x]) => [x, 28])) }),
        svg("path", { class: `line ${kind}`, d: lines(points) })] : []));
  }

  return { Chart, spark };
})();
