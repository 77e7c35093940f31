// The picture viewer of the gallery: arrows to go on, + and - to zoom, Esc (the dialog's own) to leave.
import { on } from "../core/dom.js";

const ZOOMS = [1, 1.5, 2, 3, 4];
let opened = null;
let fitted = 0;

const viewer = () => document.getElementById("image-viewer");
const pictures = () => [...document.querySelectorAll("#images [data-image]")];

function zoomTo(step) {
  const image = viewer().querySelector(".viewer__image");
  const at = Math.max(0, Math.min(ZOOMS.length - 1, ZOOMS.indexOf(Number(image.dataset.zoom)) + step));
  // Times the size at which the whole picture is seen, whatever its shape.
  if (image.dataset.zoom === "1") fitted = image.clientWidth;
  image.dataset.zoom = String(ZOOMS[at]);
  image.style.width = at ? `${Math.round(fitted * ZOOMS[at])}px` : "";
  const stage = image.parentElement;
  stage.scrollTo((stage.scrollWidth - stage.clientWidth) / 2, (stage.scrollHeight - stage.clientHeight) / 2);
}

function show(link) {
  const box = viewer();
  const all = pictures();
  opened = link;
  const image = box.querySelector(".viewer__image");
  image.dataset.zoom = "1";
  image.style.width = "";
  image.src = link.dataset.src;
  image.alt = link.querySelector("img").alt;
  box.querySelector(".viewer__title").textContent = link.dataset.title;
  box.querySelector(".viewer__count").textContent = `${all.indexOf(link) + 1} / ${all.length}`;
  box.querySelector(".viewer__facts").textContent = link.dataset.facts;
  for (const name of ["caption", "text"]) {
    const words = box.querySelector(`.viewer__${name}`);
    words.textContent = link.dataset[name];
    words.hidden = !link.dataset[name] || (link.dataset[name] === link.dataset.title && link.dataset.title.length < 60);
  }
  box.querySelector(".viewer__source").href = link.dataset.href;
  box.querySelector('[data-viewer="previous"]').disabled = link === all[0];
  box.querySelector('[data-viewer="next"]').disabled = link === all.at(-1);
  if (box.open) {
    if (document.activeElement?.disabled) box.querySelector(".viewer__stage").focus(); // keys go nowhere from a dead button
    return;
  }
  box.showModal();
  box.querySelector(".viewer__stage").focus();
}

function go(step) {
  const all = pictures();
  const next = all[all.indexOf(opened) + step];
  if (next) show(next);
}

const acts = {
  close: () => viewer().close(),
  larger: () => zoomTo(1),
  smaller: () => zoomTo(-1),
  next: () => go(1),
  previous: () => go(-1),
};
const keys = { ArrowRight: "next", ArrowDown: "next", ArrowLeft: "previous", ArrowUp: "previous", "+": "larger", "=": "larger", "-": "smaller" };

on("click", "#images [data-image]", (event, link) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || !viewer()) return;
  event.preventDefault();
  show(link);
});
on("click", "#image-viewer [data-viewer]", (_event, button) => acts[button.dataset.viewer]());
on("click", "#image-viewer .viewer__image", () => (viewer().querySelector(".viewer__image").dataset.zoom === "1" ? zoomTo(2) : zoomTo(-ZOOMS.length)));
document.addEventListener("keydown", (event) => {
  if (!viewer()?.open || event.ctrlKey || event.metaKey || event.altKey) return;
  // A zoomed picture is moved with the arrows; the focus says which of the two is meant.
  const zoomed = viewer().querySelector(".viewer__image").dataset.zoom !== "1" && event.target.closest?.(".viewer__stage");
  const act = keys[event.key];
  if (!act || (zoomed && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  acts[act]();
});
document.addEventListener(
  "close",
  (event) => {
    if (event.target === viewer()) opened?.focus();
  },
  true,
);
