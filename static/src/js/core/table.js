// Rows by keyboard: j/k or arrows move, x selects, Enter opens, e edits. A row is any [data-row]; what opens it carries
// [data-row-open], what edits it [data-row-edit]. Selection itself lives in components/selection.js.
import { isTyping, on } from "./dom.js";

const rowsOf = (list) => [...list.querySelectorAll("[data-row]")];
let active = null;

function activate(row) {
  if (!row) return;
  if (active) delete active.dataset.active;
  active = row;
  row.dataset.active = "";
  row.tabIndex = -1;
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function currentList() {
  if (active?.isConnected) return active.closest("[data-rows]");
  return document.querySelector("[data-rows]");
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (document.querySelector("dialog[open], .float:popover-open")) return;
  const onButton = event.target.closest?.('a, button, summary, [role="treeitem"]');
  const list = currentList();
  if (!list) return;
  const rows = rowsOf(list);
  const at = rows.indexOf(active?.isConnected ? active : document.activeElement?.closest("[data-row]"));
  const inRows = document.activeElement?.closest("[data-row]");
  const press = (selector) => active?.isConnected && active.querySelector(selector)?.click();
  const keys = {
    j: () => activate(rows[Math.min(rows.length - 1, at + 1)]),
    k: () => activate(rows[Math.max(0, at - 1)]),
    x: () => press("[data-select-id]"),
    e: () => press("[data-row-edit]"),
  };
  if (inRows && !onButton) Object.assign(keys, { ArrowDown: keys.j, ArrowUp: keys.k, Enter: () => press("[data-row-open]"), " ": keys.x });
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

on("focusin", "[data-row]", (_event, row) => {
  if (active && active !== row) delete active.dataset.active;
  active = row;
});

// A list that is read again keeps the row under the keyboard, or the one that took the place of a row that went.
let held = null;

function hold(event) {
  const { target } = event.detail;
  const list = active?.isConnected ? active.closest("[data-rows]") : null;
  if (!list || !target?.contains?.(active)) return;
  const here = document.activeElement;
  if (here !== document.body && !active.contains(here) && !here.closest(".selection-bar")) return;
  held = { id: active.id, at: rowsOf(list).indexOf(active), shown: "active" in active.dataset };
}

function restore() {
  if (!held || (active?.isConnected && document.activeElement !== document.body)) return;
  const { id, at, shown } = held;
  held = null;
  const rows = rowsOf(document.querySelector("[data-rows]") ?? document.createElement("div"));
  const row = (id && document.getElementById(id)) || rows[Math.min(at, rows.length - 1)];
  if (!row) return;
  if (shown) return activate(row);
  row.tabIndex = -1;
  row.focus({ preventScroll: true, focusVisible: false });
}

for (const type of ["htmx:beforeSwap", "htmx:oobBeforeSwap"]) document.addEventListener(type, hold);
for (const type of ["htmx:afterSettle", "htmx:oobAfterSwap"]) document.addEventListener(type, restore);
