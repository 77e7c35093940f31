// Keyboard of trees: arrows move, right opens, left closes or climbs, Home and End jump, Enter follows the link.
import { on } from "./dom.js";

const links = (tree) => [...tree.querySelectorAll(".tree__link")].filter((link) => link.checkVisibility());

function setOpen(item, open) {
  if (!item.hasAttribute("aria-expanded")) return;
  item.setAttribute("aria-expanded", String(open));
  const lazy = item.querySelector(":scope > .tree__group > [data-tree-load]");
  if (open && lazy) lazy.dispatchEvent(new CustomEvent("tree:open"));
}

on("click", ".tree__toggle", (event, button) => {
  event.preventDefault();
  const item = button.closest(".tree__item");
  setOpen(item, item.getAttribute("aria-expanded") !== "true");
});

/** Moves the keyboard to a node of its tree. */
export function focusOn(link) {
  if (!link) return;
  for (const other of link.closest(".tree").querySelectorAll(".tree__link")) other.tabIndex = -1;
  link.tabIndex = 0;
  link.focus();
}

on("keydown", ".tree", (event, tree) => {
  const link = event.target.closest(".tree__link");
  if (!link || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = links(tree);
  const at = all.indexOf(link);
  const item = link.closest(".tree__item");
  const open = item.getAttribute("aria-expanded");
  const moves = {
    ArrowDown: () => focusOn(all[at + 1]),
    ArrowUp: () => focusOn(all[at - 1]),
    Home: () => focusOn(all[0]),
    End: () => focusOn(all.at(-1)),
    ArrowRight: () => (open === "false" ? setOpen(item, true) : open === "true" && focusOn(all[at + 1])),
    ArrowLeft: () => (open === "true" ? setOpen(item, false) : focusOn(item.parentElement.closest(".tree__item")?.querySelector(".tree__link"))),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
});

// A tree that is read again keeps the node under the keyboard.
let held = null;
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const link = document.activeElement?.closest?.(".tree__link");
  held = link && event.detail.target.contains(link) ? { id: event.detail.target.id, folder: link.dataset.dropFolder, href: link.getAttribute("href") } : null;
});
document.addEventListener("htmx:oobAfterSwap", () => {
  if (!held) return;
  const { id, folder, href } = held;
  const all = [...document.querySelectorAll(`#${CSS.escape(id)} .tree__link`)];
  focusOn(all.find((link) => (folder === undefined ? link.getAttribute("href") === href : link.dataset.dropFolder === folder)));
  held = null;
});
