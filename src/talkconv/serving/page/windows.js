"use strict";
// The windows explorer: windowsExplorer().show(look) draws the windows of a network over a sentence.

const find = (id) => document.getElementById(id);
const word = (piece) => piece.trim() || "␣";

// Return how much token j counts in a window that reaches from token i.
function weight(i, j, left, right) {
  const reach = j <= i ? left : right;
  return Math.max(0, Math.min(1, 1 + reach - Math.abs(i - j)));
}

// Return where a window begins and ends within T tokens, counted from the sentence's beginning.
function span(i, left, right, T) {
  return [Math.max(0, i - left), Math.min(T, i + 1 + right)];
}

function element(name, attributes, ...children) {
  const svg = ["svg", "rect", "g", "line", "text"].includes(name);
  const made = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function windowsExplorer() {
  let look = null;
  let drawnWidth = 0;
  const state = { side: "encoder", layer: 0, head: 0, token: 0 };
  const shown = () => look[state.side];
  const layer = () => shown().layers[state.layer];

  function miniature(windows, head) {
    const T = shown().tokens.length;
    const svg = element("svg", { viewBox: `0 0 ${T} ${T}`, class: "mini", preserveAspectRatio: "none" });
    for (let i = 0; i < T; i++) {
      const [from, to] = span(i, windows.left[head][i], windows.right[head][i], T);
      svg.append(element("rect", { x: from, y: i + 0.1, width: to - from, height: 0.8 }));
    }
    return svg;
  }

  function drawOverview() {
    const rows = shown().layers.map((windows, index) => {
      const right = windows.r_max ? `, ${windows.r_max} right` : "";
      const row = element("div", { class: "layer" });
      // not as an attribute, which a content security policy forbids
      row.style.setProperty("--heads", windows.left.length);
      row.append(element("span", {}, `layer ${index + 1}: at most ${windows.l_max} left${right}`));
      windows.left.forEach((_, head) => {
        const button = element("button", {
          type: "button",
          "aria-pressed": index === state.layer && head === state.head,
          "aria-label": `layer ${index + 1}, head ${head + 1}`,
          title: `layer ${index + 1}, head ${head + 1}`,
        }, miniature(windows, head));
        button.addEventListener("click", () => change({ layer: index, head }));
        row.append(button);
      });
      return row;
    });
    const hadFocus = find("overview").contains(document.activeElement);
    find("overview").replaceChildren(...rows);
    // the button that was pressed is a new one, and whoever uses the keyboard goes on from it
    if (hadFocus) find("overview").querySelector("[aria-pressed=true]").focus();
  }

  function drawTokens() {
    const buttons = shown().tokens.map((piece, j) => {
      const button = element("button", { type: "button" }, word(piece));
      if (piece.endsWith(" ")) button.className = "word-end";
      for (const event of ["pointerenter", "focus", "click"]) button.addEventListener(event, () => point(j));
      button.addEventListener("keydown", (event) => {
        const next = { ArrowLeft: button.previousElementSibling, ArrowRight: button.nextElementSibling }[event.key];
        if (next) next.focus();
      });
      return button;
    });
    find("tokens").replaceChildren(...buttons);
  }

  function drawRoll() {
    const { tokens } = shown();
    const T = tokens.length, height = 22, gutter = 88;
    const width = find("roll").clientWidth, cell = (width - gutter) / T;
    drawnWidth = width;
    // there is no room while the chart is hidden or the window is being resized
    if (cell <= 0) return;
    const svg = element("svg", { height: T * height, viewBox: `0 0 ${width} ${T * height}` });
    for (let j = 0; j <= T; j++) {
      const x = gutter + j * cell;
      svg.append(element("line", { class: "column", x1: x, x2: x, y1: 0, y2: T * height }));
    }
    tokens.forEach((piece, i) => {
      const [from, to] = span(i, layer().left[state.head][i], layer().right[state.head][i], T);
      const y = i * height, bar = { class: "bar", y: y + 4, height: height - 8, rx: 3 };
      const row = element("g", { class: "row" },
        element("rect", { class: "hit", x: 0, y, width, height }),
        element("text", { x: gutter - 8, y: y + height / 2, "text-anchor": "end" }, word(piece)),
        element("rect", { ...bar, x: gutter + from * cell, width: (to - from) * cell }),
        element("rect", { ...bar, class: "self", x: gutter + (i + 0.5) * cell - 4, y: y + 7, width: 8, height: 8, rx: 2 }));
      for (const event of ["pointerenter", "click"]) row.addEventListener(event, () => point(i));
      svg.append(row);
    });
    find("roll").replaceChildren(svg);
  }

  function point(token) {
    state.token = token;
    const left = layer().left[state.head][token], right = layer().right[state.head][token];
    [...find("tokens").children].forEach((button, j) => {
      button.style.setProperty("--weight", weight(token, j, left, right));
      button.setAttribute("aria-pressed", j === token);
    });
    document.querySelectorAll("#roll .row").forEach((row, i) => row.classList.toggle("on", i === token));
    const ahead = layer().r_max ? ` and ${right.toFixed(1)} to the right` : "";
    find("reach").replaceChildren(
      element("b", {}, `“${word(shown().tokens[token])}”`),
      ` looks ${left.toFixed(1)} tokens to the left${ahead}.`);
  }

  function change(what) {
    Object.assign(state, what);
    if (!shown()) state.side = "decoder";
    const { layers, tokens } = shown();
    state.layer = Math.min(state.layer, layers.length - 1);
    state.head = Math.min(state.head, layer().left.length - 1);
    state.token = Math.min(state.token, tokens.length - 1);
    find("chosen").textContent = `${state.side}, layer ${state.layer + 1}, head ${state.head + 1}`;
    document.querySelectorAll("[data-side]").forEach((button) =>
      button.setAttribute("aria-pressed", button.dataset.side === state.side));
    drawOverview();
    drawTokens();
    drawRoll();
    point(state.token);
  }

  // Begin where the windows of a sentence differ most, with the widest one.
  function mostVaried() {
    const T = shown().tokens.length;
    const widths = (windows, head) => windows.left[head].map((left, i) => {
      const [from, to] = span(i, left, windows.right[head][i], T);
      return to - from;
    });
    const all = shown().layers.flatMap((windows, index) => windows.left.map((_, head) => {
      const found = widths(windows, head), widest = Math.max(...found);
      return { layer: index, head, token: found.lastIndexOf(widest), spread: widest - Math.min(...found) };
    }));
    const { layer: index, head, token } = all.reduce((best, one) => (one.spread > best.spread ? one : best));
    return { layer: index, head, token };
  }

  document.querySelectorAll("[data-side]").forEach((button) =>
    button.addEventListener("click", () => change({ side: button.dataset.side, token: 0 })));
  // the chart is drawn again when its width changes, also when it was hidden before
  new ResizeObserver(() => {
    if (look && find("roll").clientWidth !== drawnWidth) {
      drawRoll();
      point(state.token);
    }
  }).observe(find("roll"));

  return {
    // Show another sentence: its layer and head stay, unless it is the first one.
    show(next) {
      const first = !look;
      look = next;
      document.querySelectorAll("[data-side=encoder]").forEach((button) => { button.hidden = !look.encoder; });
      if (!shown()) state.side = "decoder";
      change(first ? mostVaried() : { token: 0 });
    },
  };
}
