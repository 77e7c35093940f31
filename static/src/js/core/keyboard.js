// Keys that work everywhere: ? lists them, / and Ctrl-K search, Esc closes the top layer. Pages add their own with
// data-shortcut="n" data-shortcut-label="New document" on the button or link the key should press.
import { isTyping, on } from "./dom.js";
import { closePanel, hideTip, openDialog } from "./overlays.js";

const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey;

function search() {
  const palette = document.getElementById("command-palette");
  if (palette) openDialog(palette);
  else document.querySelector('[type="search"]')?.focus();
}

/** Lists what works on this page: groups whose data-when matches something, and the page's own keys. */
function help() {
  const dialog = document.getElementById("shortcut-overlay");
  if (!dialog) return;
  for (const group of dialog.querySelectorAll("[data-when]")) group.hidden = !document.querySelector(group.dataset.when);
  const own = dialog.querySelector("[data-own-keys]");
  if (own) {
    own.querySelectorAll(".shortcuts__row").forEach((row) => row.remove());
    for (const element of document.querySelectorAll("[data-shortcut][data-shortcut-label]")) own.append(row(element));
    own.hidden = !own.querySelector(".shortcuts__row");
  }
  openDialog(dialog);
}

function row(element) {
  const line = document.createElement("div");
  line.className = "shortcuts__row";
  const label = document.createElement("span");
  label.textContent = element.dataset.shortcutLabel;
  const key = document.createElement("kbd");
  key.className = "kbd";
  key.textContent = element.dataset.shortcut;
  line.append(label, key);
  return line;
}

on("click", "[data-open-search]", search);
on("click", "[data-open-help]", help);

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    return search();
  }
  if (event.key === "Escape") {
    hideTip();
    // Dialogs and popovers close themselves; a panel is ours.
    if (!document.querySelector("dialog[open], .float:popover-open")) closePanel();
    return;
  }
  if (!plain(event) || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    event.preventDefault();
    return help();
  }
  if (event.key === "/") {
    event.preventDefault();
    return search();
  }
  const target = document.querySelector(`[data-shortcut="${CSS.escape(event.key)}"]`);
  if (target && target.checkVisibility()) {
    event.preventDefault();
    if (target.matches("input, textarea")) target.focus();
    else target.click();
  }
});

// Apple keyboards say what their key is called.
if (/Mac|iPhone|iPad/.test(navigator.platform)) {
  for (const key of document.querySelectorAll("[data-mod-key]")) key.textContent = key.textContent.replace(/Ctrl\s*/, "⌘");
}
