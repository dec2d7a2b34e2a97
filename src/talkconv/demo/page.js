// The demo's page shows the windows over some sentences, which are part of the page.
const { sentences } = JSON.parse(document.getElementById("data").textContent);

if (sentences.length) {
  const explorer = windowsExplorer();
  sentences.forEach(({ text }, index) => find("sentence").append(element("option", { value: index }, text)));
  find("sentence").addEventListener("change", (event) => explorer.show(sentences[+event.target.value]));
  explorer.show(sentences[0]);
} else {
  find("windows").hidden = true;
}
