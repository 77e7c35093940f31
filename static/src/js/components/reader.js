// The document reader: a passage shows its place in the original, a place in the original shows its passage.
// Runs of text carry data-c (numbers of the passages they belong to); list rows carry data-index, and for PDF pages data-boxes.
import { announce, eachAdded, on, parseJson } from "../core/dom.js";
import { htmx } from "../core/htmx.js";
import { say } from "../core/i18n.js";

const reader = () => document.getElementById("reader");
const rowOf = (index) => document.querySelector(`#passages .psg[data-index="${CSS.escape(index)}"]`);
const runsOf = (index) => [...document.querySelectorAll(`#original .run[data-c~="${CSS.escape(index)}"]`)];
const narrow = () => matchMedia("(width < 1000px)").matches;

/** On a narrow screen one of the two panes is shown. */
function openPane(name) {
  const root = reader();
  if (!root) return;
  root.dataset.pane = name;
  for (const tab of root.querySelectorAll("[data-pane-open]")) {
    if (tab.dataset.paneOpen === name) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
}

function mark(row, runs) {
  for (const old of document.querySelectorAll("#passages .psg.is-on, #original .run.is-on")) {
    old.classList.remove("is-on");
    old.removeAttribute("aria-current");
  }
  row?.classList.add("is-on");
  row?.setAttribute("aria-current", "true");
  for (const run of runs) run.classList.add("is-on");
}

function scrollInto(element) {
  element?.scrollIntoView({ block: "center", inline: "nearest" });
}

function address(changes) {
  const url = new URL(location.href);
  for (const name of ["part", "index", "at", "page"]) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(changes)) url.searchParams.set(name, value);
  url.hash = "";
  return url;
}

/** Shows a passage of the list in the original; what is not in the page yet is fetched. */
async function show(row, { keepPane = false } = {}) {
  const { index, uid, boxes, page } = row.dataset;
  const url = address({ chunk: uid });
  history.replaceState(history.state, "", url);
  if (narrow() && !keepPane) openPane("original");
  const original = document.getElementById("original");
  if (original?.dataset.view === "pdf") {
    mark(row, []);
    const highlights = parseJson(boxes ?? "") ?? [];
    if (page) window.dispatchEvent(new CustomEvent("kb:pdf-goto", { detail: { page: Number(page), highlights } }));
    return;
  }
  if (original?.dataset.view === "image") return mark(row, []);
  const runs = "text" in row.dataset ? runsOf(index) : [];
  mark(row, runs);
  if (runs.length) return scrollInto(runs[0]);
  if (!("text" in row.dataset) || original?.dataset.view === "formatted") return;
  await htmx.ajax("GET", url.pathname + url.search, { target: "#original", swap: "outerHTML" });
  const found = runsOf(index);
  mark(row, found);
  scrollInto(found[0]);
}

/** Shows the passage at a place of the original in the list; one on another page of the list is fetched with it. */
async function showPassage(query, row) {
  if (!row) {
    const url = address(query);
    const answer = await fetch(url.pathname + url.search, { headers: { "HX-Request": "true", "HX-Target": "passages" }, credentials: "same-origin" }).catch(() => null);
    if (!answer?.ok) return;
    const html = await answer.text();
    const list = document.getElementById("passages");
    if (!list) return;
    htmx.swap(list, html, { swapStyle: "outerHTML" });
    history.replaceState(history.state, "", new URL(answer.url));
    row = document.querySelector("#passages .psg.is-on");
    if (!row) return;
  }
  const { index, uid, boxes, page } = row.dataset;
  history.replaceState(history.state, "", address({ chunk: uid }));
  mark(row, runsOf(index));
  if (boxes && document.getElementById("original")?.dataset.view === "pdf") {
    window.dispatchEvent(new CustomEvent("kb:pdf-mark", { detail: { page: Number(page), highlights: parseJson(boxes) ?? [] } }));
  }
  row.scrollIntoView({ block: "nearest" });
  announce(row.querySelector(".psg__text")?.textContent.slice(0, 200) ?? say("keys.page"));
}

on("click", ".psg:not(.psg--edit)", (event, row) => {
  const inside = event.target.closest("a, button, input, form, summary, label");
  if (inside && !inside.matches("[data-row-open]")) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
  if (!inside && String(getSelection()).length) return;
  event.preventDefault();
  show(row);
});

on("click", "#original .run[data-c]", (event, run) => {
  if (String(getSelection()).length || event.target.closest("a")) return;
  const names = run.dataset.c.split(" ");
  // Passages overlap: the one that begins here rather than the one that ends here, unless that is the one shown already.
  const index = run.classList.contains("is-on") && names.length > 1 ? names.find((name) => !rowOf(name)?.classList.contains("is-on")) ?? names.at(-1) : names.at(-1);
  showPassage({ index }, rowOf(index));
});

on("click", "[data-pdf] .pdf__page", (event, page) => {
  if (String(getSelection()).length) return;
  const box = page.getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width;
  const y = (event.clientY - box.top) / box.height;
  const number = Number(page.dataset.page);
  const row = [...document.querySelectorAll("#passages .psg[data-boxes]")].find((each) =>
    (parseJson(each.dataset.boxes) ?? []).some((hit) => hit.page === number && x >= hit.x && x <= hit.x + hit.w && y >= hit.y && y <= hit.y + hit.h),
  );
  showPassage({ at: `${number}:${x.toFixed(4)}:${y.toFixed(4)}` }, row);
});

on("click", "[data-pane-open]", (event, tab) => {
  event.preventDefault();
  openPane(tab.dataset.paneOpen);
});

// j and k move through the list (core/table.js); in the reader the original follows.
document.addEventListener("focusin", (event) => {
  const row = event.target.matches?.(".psg[data-active]:not(.psg--edit)") ? event.target : null;
  if (row && reader()) show(row, { keepPane: true });
});

// / searches in the document, Esc gives up an edit: both before the keys that hold everywhere.
document.addEventListener(
  "keydown",
  (event) => {
    if (!reader() || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && event.target.closest?.(".psg--edit")) {
      event.preventDefault();
      event.target.closest(".psg--edit").querySelector("[data-edit-cancel]")?.click();
      return;
    }
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, textarea, select")) return;
    const field = document.querySelector("#passages .passages__find input[type=search]");
    if (!field) return;
    event.preventDefault();
    if (narrow()) openPane("passages");
    field.focus();
    field.select();
  },
  true,
);

on("change", "[data-submit-on-change]", (_event, field) => field.form?.requestSubmit());

eachAdded("#reader", () => {
  const run = document.querySelector("#original .run.is-on");
  const row = document.querySelector("#passages .psg.is-on");
  if (run) requestAnimationFrame(() => scrollInto(run));
  if (row) row.scrollIntoView({ block: "nearest" });
});

document.addEventListener("htmx:afterSwap", (event) => {
  // A part that came in later may hold the rest of the passage shown.
  const shown = event.target.closest?.("#original") && document.querySelector("#passages .psg.is-on[data-text]");
  if (shown) for (const run of runsOf(shown.dataset.index)) run.classList.add("is-on");
  if (event.target.id === "passages" || event.target.closest?.(".psg--edit")) document.querySelector(".psg--edit textarea")?.focus();
});
