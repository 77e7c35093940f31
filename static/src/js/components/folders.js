// Folders as in a file manager: empty ones that live in this window only, F2 and Delete in the tree, dragging documents and
// folders onto folders. The server knows a folder by the documents in it; everything else about an empty one is here.
import { eachAdded, on, store } from "../core/dom.js";
import { htmx } from "../core/htmx.js";
import { focusOn } from "../core/tree.js";

const home = () => document.querySelector("[data-folders]");
const key = () => `kb:folders:${home()?.dataset.folders}`;
const empties = () => store("sessionStorage", key()) ?? [];
const keep = (paths) => store("sessionStorage", key(), paths.length ? [...new Set(paths)].sort() : null);
const within = (path, folder) => path === folder || path.startsWith(`${folder}/`);
const find = (path) => document.querySelector(`.tree__link[data-drop-folder="${CSS.escape(path)}"]`);
const openFolder = () => document.getElementById("list-folder")?.value ?? "";

function address(path) {
  return `${home().dataset.foldersAddress}?folder=${encodeURIComponent(path)}`;
}

/** A node like the server's, made from one of its own so that both look the same. */
function node(path, label) {
  const item = document.createElement("li");
  item.className = "tree__item";
  item.setAttribute("role", "treeitem");
  const row = Object.assign(document.createElement("div"), { className: "tree__row" });
  const gap = Object.assign(document.createElement("span"), { className: "tree__toggle" });
  gap.setAttribute("aria-hidden", "true");
  const link = Object.assign(document.createElement("a"), { className: "tree__link", href: address(path), tabIndex: -1 });
  link.dataset.dropFolder = path;
  link.dataset.folderName = path.split("/").pop();
  link.dataset.emptyFolder = "";
  if (path === openFolder()) link.setAttribute("aria-current", "page");
  const icon = home().querySelector(".tree__link .icon")?.cloneNode(true);
  icon?.querySelector("use")?.setAttribute("href", icon.querySelector("use").getAttribute("href").replace(/#.*/, "#folder"));
  const text = Object.assign(document.createElement("span"), { className: "grow truncate", textContent: label });
  const count = Object.assign(document.createElement("span"), { className: "tree__count", textContent: "0" });
  link.append(...(icon ? [icon] : []), text, count);
  row.append(gap, link);
  item.append(row);
  return item;
}

/** Puts the empty folders of this window into the tree and among the tiles; what the server shows is no longer empty. */
function paint() {
  if (!home()) return;
  document.querySelectorAll("[data-empty-folder]").forEach((old) => (old.closest(".tree__item") ?? old).remove());
  const left = empties().filter((path) => !find(path));
  keep(left);
  for (const path of left) {
    const above = path.split("/").slice(0, -1);
    let label = path;
    let group = home().querySelector(".tree");
    for (let depth = above.length; depth > 0; depth -= 1) {
      const link = find(above.slice(0, depth).join("/"));
      const list = link?.closest(".tree__item").querySelector(":scope > .tree__group:not(:has(> [data-tree-load]))");
      if (!list) continue;
      group = list;
      label = path.split("/").slice(depth).join("/");
      break;
    }
    group?.append(node(path, label));
    if (above.join("/") === openFolder()) tile(path);
  }
  htmx.process(home());
}

function tile(path) {
  const tiles = document.querySelector("[data-tiles]");
  if (!tiles) return;
  const link = Object.assign(document.createElement("a"), { className: "tile", href: address(path) });
  link.dataset.dropFolder = path;
  link.dataset.emptyFolder = "";
  const icon = find(path)?.querySelector(".icon")?.cloneNode(true);
  link.append(...(icon ? [icon] : []), Object.assign(document.createElement("span"), { className: "truncate", textContent: path.split("/").pop() }));
  tiles.append(link);
  htmx.process(link);
}

eachAdded("#folders", paint);
eachAdded("#documents", paint);
eachAdded("[data-folders] .tree__group > .tree__item:first-child", paint); // a branch that was opened

// These three leave for another page: the keyboard finds its place in the tree there.
const BACK = "kb:folder-focus";
const leave = (paths) => {
  keep(paths);
  store("sessionStorage", BACK, true);
};
document.body.addEventListener("kb:folder-made", (event) => leave([...empties(), event.detail.path]));
document.body.addEventListener("kb:folder-gone", (event) => leave(empties().filter((path) => !within(path, event.detail.path))));
document.body.addEventListener("kb:folder-moved", (event) => {
  const { from, to } = event.detail;
  leave(empties().map((path) => (within(path, from) ? to + path.slice(from.length) : path)));
});
eachAdded("#folders", (folders) => {
  if (!store("sessionStorage", BACK)) return;
  store("sessionStorage", BACK, null);
  const link = folders.querySelector('.tree__link[aria-current="page"]');
  if (link?.checkVisibility()) focusOn(link);
});

const dialog = (url, values) => htmx.ajax("GET", `${url}?${new URLSearchParams(values)}`, { target: "#dialog-slot", swap: "innerHTML" });

on("keydown", "[data-folders] .tree__link[data-drop-folder]", (event, link) => {
  const folder = link.dataset.dropFolder;
  if (!folder || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const urls = { F2: home().dataset.folderRename, Delete: home().dataset.folderDelete };
  if (!urls[event.key]) return;
  event.preventDefault();
  dialog(urls[event.key], { folder });
});

// Dragging: a row takes the whole selection along when it is part of it; a folder can be put into another.
const KIND = "application/x-kb-move";
let moving = null;

function marked(event, target) {
  document.querySelectorAll("[data-over]").forEach((other) => other.removeAttribute("data-over"));
  if (target) (target.closest(".tree__row") ?? target).dataset.over = "";
  if (target) event.preventDefault();
}

on("dragstart", "#documents [data-row], [data-drop-folder]", (event, element) => {
  if (!home()) return;
  const folder = element.dataset.dropFolder;
  const own = element.querySelector("[data-select-id]")?.dataset.selectId;
  if (folder) moving = { folder };
  else if (own) {
    const { ids, everything } = document.getElementById("documents").kbSelected?.() ?? { ids: [] };
    moving = everything ? { all: true } : { ids: ids.includes(own) ? ids : [own] };
  } else return;
  event.dataTransfer.setData(KIND, "1");
  event.dataTransfer.effectAllowed = "move";
});

const fits = (target) => moving && target.dataset.dropFolder !== undefined && !(moving.folder && within(target.dataset.dropFolder || "\0", moving.folder));

on("dragover", "#documents, #folders", (event) => {
  const target = event.target.closest("[data-drop-folder], .tree__row")?.closest("[data-drop-folder]") ?? event.target.closest(".tree__row")?.querySelector("[data-drop-folder]");
  marked(event, target && fits(target) ? target : null);
});

on("drop", "#documents, #folders", (event) => {
  const target = event.target.closest("[data-drop-folder]") ?? event.target.closest(".tree__row")?.querySelector("[data-drop-folder]");
  if (!target || !fits(target)) return;
  event.preventDefault();
  const into = target.dataset.dropFolder;
  const options = { target: "#dialog-slot", swap: "innerHTML" };
  if (moving.all) htmx.ajax("POST", home().dataset.folderPut + location.search, { ...options, values: { all: "1", folder: into } });
  else if (moving.ids) htmx.ajax("POST", home().dataset.folderPut, { ...options, values: { ids: moving.ids, folder: into } });
  else {
    const name = moving.folder.split("/").pop();
    htmx.ajax("POST", home().dataset.folderRename, { ...options, values: { source: moving.folder, target: into ? `${into}/${name}` : name } });
  }
});

document.addEventListener("dragend", (event) => {
  marked(event, null);
  moving = null;
});

// Rows are made draggable here: a browser without script has nowhere to drop them.
eachAdded("#documents [data-row]", (row) => {
  if (home()) row.draggable = true;
});
