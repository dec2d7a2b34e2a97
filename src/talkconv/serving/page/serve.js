"use strict";
// The server's page: it sends what is typed, and shows the outputs as they are written.

const { alternatives, windows: hasWindows } = document.body.dataset;
const explorer = windowsExplorer();
const PAUSE = 350; // milliseconds without a key before the text is sent
const UNREACHABLE = "The server cannot be reached.";
let timer = null;
let running = null; // aborts the request that is under way
let sentences = []; // of the text that is shown: { source, outputs, button }

function say(text, wrong = false) {
  find("status").textContent = text;
  find("status").classList.toggle("wrong", wrong);
}

function body(fields) {
  const key = find("key") ? { api_key: find("key").value } : {};
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...fields, ...key }) };
}

async function problemOf(response) {
  const answer = await response.json().catch(() => ({}));
  const later = response.headers.get("Retry-After");
  return (answer.error || `The server answered ${response.status}.`) + (later ? ` Try again in ${later} s.` : "");
}

// Yield the JSON objects of an answer, one a line, as they come.
async function* linesOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

// Lay out a text: parts 1, 3, 5, ... are sentences, those between them stay as they are.
function layOut(parts) {
  sentences = [];
  const nodes = parts.map((part, i) => {
    if (i % 2 === 0) return document.createTextNode(part);
    // a real button would be a box of its own, and the lines of a text would not be filled
    const button = element("span", { role: "button", tabindex: 0, class: "coming", "aria-pressed": false });
    const sentence = { source: part, outputs: [], button };
    button.addEventListener("click", () => choose(sentence));
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(sentence);
    });
    sentences.push(sentence);
    return button;
  });
  find("output").replaceChildren(...nodes);
}

function receive(item) {
  if (item.parts) layOut(item.parts);
  if (item.error) say(item.error, true);
  if (item.sentence === undefined) return;
  const sentence = sentences[item.sentence];
  if (item.text !== undefined && !sentence.outputs.length) sentence.button.textContent = item.text;
  if (item.outputs) {
    sentence.outputs = item.outputs;
    sentence.button.textContent = item.outputs[0].text;
    sentence.button.classList.remove("coming");
    // a sentence that the reader has chosen stays chosen
    if (!sentences.some(isChosen)) choose(sentence);
  }
}

const isChosen = ({ button }) => button.getAttribute("aria-pressed") === "true";

async function choose(sentence) {
  if (!sentence.outputs.length) return;
  for (const each of sentences) each.button.setAttribute("aria-pressed", each === sentence);
  find("others").hidden = false;
  find("best").replaceChildren(...sentence.outputs.map(({ text, score }) =>
    element("li", {}, `${text} `, element("span", { class: "score" }, score.toFixed(2)))));
  const look = hasWindows && await windowsOf(sentence);
  // an answer that comes late must not replace that of another sentence
  if (!look || !isChosen(sentence) || !sentence.button.isConnected) return;
  find("windows").hidden = false;
  explorer.show(look);
}

async function windowsOf({ source, outputs }) {
  try {
    const response = await fetch("windows", body({ q: source, output: outputs[0].text }));
    if (response.ok) return await response.json();
    say(await problemOf(response), true);
  } catch {
    say(UNREACHABLE, true);
  }
  return null;
}

async function write() {
  clearTimeout(timer);
  if (running) running.abort();
  running = new AbortController();
  const { signal } = running;
  const text = find("text").value;
  if (!text.trim()) {
    find("output").replaceChildren();
    find("output").setAttribute("aria-busy", false);
    find("others").hidden = find("windows").hidden = true;
    return say("");
  }
  say("…");
  // screen readers wait until the text is complete
  find("output").setAttribute("aria-busy", true);
  try {
    const response = await fetch("stream", { ...body({ q: text, alternatives: +alternatives }), signal });
    if (!response.ok) return say(await problemOf(response), true);
    say("");
    for await (const item of linesOf(response)) receive(item);
  } catch (error) {
    if (error.name !== "AbortError") say(UNREACHABLE, true);
  } finally {
    if (!signal.aborted) find("output").setAttribute("aria-busy", false);
  }
}

find("text").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(write, PAUSE);
});
find("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) write();
});
if (find("key")) find("key").addEventListener("change", write);
