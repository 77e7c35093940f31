// Keyboard of trees: arrows move, right opens, left closes or climbs, Home and End jump, Enter follows the link.
import { on } from "./dom.js";

const links = (tree) => [...tree.querySelectorAll(".tree__link")].filter((link) => link.checkVisibility());

function setOpen(item, open) {
  if (!item.hasAttribute("aria-expanded")) return;
  item.setAttribute("aria-expanded", String(open));
  const lazy = item.querySelector(":scope > [data-tree-load]");
  if (open && lazy) lazy.dispatchEvent(new CustomEvent("tree:open", { bubbles: true }));
}

on("click", ".tree__toggle", (event, button) => {
  event.preventDefault();
  const item = button.closest(".tree__item");
  setOpen(item, item.getAttribute("aria-expanded") !== "true");
});

function focusOn(tree, link) {
  if (!link) return;
  for (const other of tree.querySelectorAll(".tree__link")) other.tabIndex = -1;
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
    ArrowDown: () => focusOn(tree, all[at + 1]),
    ArrowUp: () => focusOn(tree, all[at - 1]),
    Home: () => focusOn(tree, all[0]),
    End: () => focusOn(tree, all.at(-1)),
    ArrowRight: () => (open === "false" ? setOpen(item, true) : open === "true" && focusOn(tree, all[at + 1])),
    ArrowLeft: () => (open === "true" ? setOpen(item, false) : focusOn(tree, item.parentElement.closest(".tree__item")?.querySelector(".tree__link"))),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
});
