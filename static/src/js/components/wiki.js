// The wiki's tree: pages and folders are dragged onto folders, and asked about before they move; F2 and Delete work on a folder.
import { eachAdded, on } from "../core/dom.js";
import { htmx } from "../core/htmx.js";

const home = () => document.querySelector("[data-wiki]");
const ask = (url, values = {}) => htmx.ajax("GET", `${url}?${new URLSearchParams(values)}`, { target: "#dialog-slot", swap: "innerHTML" });
const folderUrl = (folder) => `${home().dataset.wiki}/folders/${folder}`;

let moving = null;

function mark(event, target) {
  document.querySelectorAll("[data-over]").forEach((other) => other.removeAttribute("data-over"));
  if (!target) return;
  (target.closest(".tree__row") ?? target).dataset.over = "";
  event.preventDefault();
}

const targetOf = (event) => event.target.closest("[data-wiki-folder]") ?? event.target.closest(".tree__row")?.querySelector("[data-wiki-folder]");
const inside = (target) => moving?.folder && target.closest(".tree__item")?.parentElement.closest(`.tree__item:has(> .tree__row [data-wiki-folder="${moving.folder}"])`);
const fits = (target) => moving && !(moving.folder && (target.dataset.wikiFolder === moving.folder || inside(target)));

on("dragstart", "[data-wiki-page], [data-wiki-folder]", (event, element) => {
  if (!home()) return;
  const folder = element.dataset.wikiFolder;
  if (folder === "") return;
  moving = folder ? { folder } : { page: element.dataset.wikiPage };
  event.dataTransfer.setData("application/x-kb-wiki", "1");
  event.dataTransfer.effectAllowed = "move";
});

on("dragover", "#wiki-tree", (event) => {
  const target = targetOf(event);
  mark(event, target && fits(target) ? target : null);
});

on("drop", "#wiki-tree", (event) => {
  const target = targetOf(event);
  if (!target || !fits(target)) return;
  event.preventDefault();
  const into = target.dataset.wikiFolder;
  if (moving.page) ask(home().dataset.wikiMove, { ids: moving.page, folder: into });
  else ask(folderUrl(moving.folder), { into });
});

document.addEventListener("dragend", (event) => {
  if (!moving) return;
  mark(event, null);
  moving = null;
});

on("keydown", "#wiki-tree .tree__link[data-wiki-folder]", (event, link) => {
  const folder = link.dataset.wikiFolder;
  if (!home() || !folder || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (event.key !== "F2" && event.key !== "Delete") return;
  event.preventDefault();
  ask(event.key === "F2" ? folderUrl(folder) : `${folderUrl(folder)}/delete`);
});

// Rows are made draggable here: a browser without script has nowhere to drop them.
eachAdded(".wiki-row[data-wiki-page]", (row) => {
  if (home()) row.draggable = true;
});
