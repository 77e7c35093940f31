// Formulas and diagrams are drawn in the browser, and their code is loaded only by pages that have one.
import { eachAdded } from "./dom.js";
import { isDark } from "./theme.js";

const asset = (name) => new URL(name, import.meta.url).href;
let katexReady = null;
let mermaidReady = null;
let diagrams = 0;

function loadKatex() {
  katexReady ??= (() => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = asset("katex.css");
    document.head.append(link);
    return import("katex").then((module) => module.default);
  })();
  return katexReady;
}

async function drawFormula(element) {
  if (element.dataset.drawn) return;
  element.dataset.drawn = "1";
  const source = element.textContent.trim();
  const display = source.startsWith("\\[") || source.startsWith("$$");
  const tex = source.replace(/^(\\\[|\\\(|\$\$)/, "").replace(/(\\\]|\\\)|\$\$)$/, "");
  const katex = await loadKatex();
  // Bad TeX is shown as it was written, in the error colour; it must not empty the page.
  katex.render(tex, element, { displayMode: display, throwOnError: false, trust: false, maxSize: 20, maxExpand: 500, errorColor: "var(--color-danger)" });
}

function loadMermaid() {
  mermaidReady ??= import("mermaid").then((module) => module.default);
  return mermaidReady;
}

/**
 * The content policy refuses style elements and style attributes, which Mermaid's SVG is full of. Its sheet is therefore
 * adopted by a shadow root of its own and its style attributes are set through the object model: both are allowed.
 */
function place(host, svgText) {
  const parsed = new DOMParser().parseFromString(svgText, "text/html").querySelector("svg");
  const root = host.attachShadow({ mode: "open" });
  const sheets = [];
  for (const style of parsed.querySelectorAll("style")) {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style.textContent);
    sheets.push(sheet);
    style.remove();
  }
  const own = new CSSStyleSheet();
  own.replaceSync("svg { display: block; max-width: 100%; height: auto; margin: auto; }");
  root.adoptedStyleSheets = [...sheets, own];
  const wanted = [...parsed.querySelectorAll("[style]"), parsed].map((element) => [element, element.getAttribute("style") ?? ""]);
  for (const [element] of wanted) element.removeAttribute("style");
  root.append(document.adoptNode(parsed));
  for (const [element, text] of wanted) element.style.cssText = text;
}

async function drawDiagram(element) {
  if (element.dataset.drawn) return;
  element.dataset.drawn = "1";
  const source = element.textContent;
  const mermaid = await loadMermaid();
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: isDark() ? "dark" : "neutral",
    fontFamily: getComputedStyle(document.body).fontFamily,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    suppressErrorRendering: true,
  });
  const measure = document.createElement("div");
  measure.className = "diagram-measure";
  document.body.append(measure);
  try {
    const { svg } = await mermaid.render(`diagram-${(diagrams += 1)}`, source, measure);
    const host = document.createElement("div");
    host.className = "diagram";
    host.setAttribute("role", "img");
    host.setAttribute("aria-label", source.trim().slice(0, 300));
    place(host, svg);
    element.replaceWith(host);
  } catch {
    // A diagram that does not parse stays readable as its source.
    element.dataset.failed = "1";
  } finally {
    measure.remove();
  }
}

eachAdded(".arithmatex", drawFormula);
eachAdded("pre.mermaid", drawDiagram);
