// Menus and popovers use the browser's own popover layer (Esc, light dismiss, focus return); dialogs the native <dialog>
// (focus trap, Esc, backdrop). Here: where they stand, arrow keys, panels of the frame, tooltips.
import { focusables, on } from "./dom.js";

const GAP = 4;

/** Puts a floating box beside its opener, inside the window. */
export function placeBeside(box, anchor, wish = "bottom-start") {
  const at = anchor.getBoundingClientRect();
  const size = box.getBoundingClientRect();
  const below = innerHeight - at.bottom;
  const above = wish.startsWith("top") ? at.top > size.height + GAP : below < size.height + GAP && at.top > below;
  const left = wish.endsWith("end") ? at.right - size.width : wish.endsWith("center") ? at.left + at.width / 2 - size.width / 2 : at.left;
  box.style.left = `${Math.max(8, Math.min(left, innerWidth - size.width - 8))}px`;
  box.style.top = `${Math.max(8, Math.min(above ? at.top - size.height - GAP : at.bottom + GAP, innerHeight - size.height - 8))}px`;
}

let opener = null;
on("click", "[popovertarget]", (_event, button) => (opener = button), true);

/** The buttons of a floating box, the one that was pressed last first. */
function openersOf(box) {
  const buttons = [...document.querySelectorAll(`[popovertarget="${CSS.escape(box.id)}"]`)];
  return buttons.sort((one, other) => (other === opener) - (one === opener));
}

document.addEventListener(
  "toggle",
  (event) => {
    const box = event.target;
    if (!(box instanceof HTMLElement) || !box.matches(".float[popover]")) return;
    const buttons = openersOf(box);
    const [button] = buttons;
    for (const each of buttons) each.setAttribute("aria-expanded", String(event.newState === "open" && each === button));
    if (event.newState !== "open" || !button) return;
    placeBeside(box, button, box.dataset.place);
    if (box.getAttribute("role") === "menu") items(box)[0]?.focus({ focusVisible: false });
    else box.querySelector("[autofocus]")?.focus();
  },
  true,
);

// The box stays beside its opener while the page moves, and leaves with it.
for (const type of ["resize", "scroll"]) {
  addEventListener(
    type,
    (event) => {
      const box = document.querySelector(".float:popover-open");
      if (!box || (event.target instanceof Node && box.contains(event.target))) return;
      // Not by aria-expanded: "toggle" comes a moment after the box is open, and the page may still be scrolling to the button then.
      const [button] = openersOf(box);
      if (!button) return;
      const at = button.getBoundingClientRect();
      if (at.bottom < 0 || at.top > innerHeight) box.hidePopover();
      else placeBeside(box, button, box.dataset.place);
    },
    { capture: true, passive: true },
  );
}

const items = (menu) => [...menu.querySelectorAll('[role^="menuitem"]')].filter((item) => !item.disabled && item.checkVisibility());

on("keydown", '[role="menu"]', (event, menu) => {
  const all = items(menu);
  const at = all.indexOf(document.activeElement);
  const goals = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length, Home: 0, End: all.length - 1 };
  if (event.key in goals) {
    event.preventDefault();
    all[goals[event.key]]?.focus();
  } else if (event.key === "Tab") {
    menu.hidePopover?.();
  } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
    const wanted = event.key.toLocaleLowerCase();
    const hit = [...all.slice(at + 1), ...all].find((item) => item.textContent.trim().toLocaleLowerCase().startsWith(wanted));
    if (hit) hit.focus();
  }
});

// Choosing closes the menu; an item that only toggles may stay open with data-keep-open.
on("click", '[role="menu"] [role^="menuitem"]', (_event, item) => {
  if (!item.hasAttribute("data-keep-open") && item.getAttribute("aria-disabled") !== "true") item.closest("[popover]")?.hidePopover();
});

on("click", '[aria-disabled="true"]', (event) => event.preventDefault(), true);

export function openDialog(dialog) {
  if (!(dialog instanceof HTMLDialogElement) || dialog.open) return;
  for (const box of document.querySelectorAll(".float:popover-open")) box.hidePopover();
  dialog.showModal();
  const wanted = dialog.querySelector("[autofocus]") ?? dialog.querySelector("[data-focus]") ?? firstInside(dialog);
  wanted?.focus();
  if (wanted?.matches('input[type="text"]')) wanted.select();
}

/** What the dialog is about comes before the button that closes it. On a touch screen a field would call up the keyboard unasked. */
function firstInside(dialog) {
  const inside = focusables(dialog).filter((element) => element.closest(".dialog__body"));
  const field = inside.find((element) => element.matches("input, select, textarea"));
  return field && matchMedia("(pointer: coarse)").matches ? null : (field ?? inside[0]);
}

on("click", "[data-dialog-open]", (event, button) => {
  event.preventDefault();
  openDialog(document.getElementById(button.dataset.dialogOpen));
});

// A dialog whose form came back with errors.
for (const dialog of document.querySelectorAll("dialog[data-open]")) openDialog(dialog);

on("click", "[data-dialog-close]", (_event, button) => button.closest("dialog")?.close(button.value || ""));

// A press on the backdrop closes, unless the dialog holds typed text (data-guard asks before).
document.addEventListener("pointerdown", (event) => {
  const dialog = event.target;
  if (!(dialog instanceof HTMLDialogElement) || dialog.hasAttribute("data-static")) return;
  const box = dialog.getBoundingClientRect();
  const outside = event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom;
  if (outside && !dialog.querySelector("form[data-dirty]")) dialog.close("");
});

// Tree and dock become sheets on small screens: one open at a time, focus inside, Esc and the veil close.
let panel = null;
let panelOpener = null;

export function closePanel() {
  if (!panel) return false;
  delete panel.dataset.open;
  document.querySelector(".panel-veil")?.remove();
  panelOpener?.focus();
  panel = panelOpener = null;
  return true;
}

export function openPanel(element, from = null) {
  if (!element) return;
  closePanel();
  element.dataset.open = "";
  if (getComputedStyle(element).position !== "fixed") return;
  panel = element;
  panelOpener = from ?? document.activeElement;
  const veil = document.createElement("div");
  veil.className = "panel-veil";
  veil.addEventListener("click", closePanel);
  element.before(veil);
  (element.querySelector("[autofocus]") ?? focusables(element)[0])?.focus();
}

on("click", "[data-panel-open]", (_event, button) => openPanel(document.getElementById(button.dataset.panelOpen), button));
on("click", "[data-panel-close]", closePanel);
on("click", "[data-dock-close]", () => {
  closePanel();
  document.getElementById("dock")?.replaceChildren();
});
// Whatever a page loads into the dock is brought before the reader's eyes.
document.addEventListener("htmx:afterSwap", (event) => {
  const dock = event.target.closest?.("#dock");
  if (dock && dock !== panel) openPanel(dock);
});
document.addEventListener("keydown", (event) => {
  if (!panel || event.key !== "Tab") return;
  const all = focusables(panel);
  const edge = event.shiftKey ? all[0] : all.at(-1);
  if (document.activeElement === edge || !panel.contains(document.activeElement)) {
    event.preventDefault();
    (event.shiftKey ? all.at(-1) : all[0])?.focus();
  }
});

// Tooltips: one element for the whole page, filled from data-tooltip, shown on hover and keyboard focus.
let tip = null;
let tipTimer = 0;

function showTip(host) {
  tip ??= Object.assign(document.createElement("div"), { className: "tooltip", id: "tooltip" });
  tip.setAttribute("role", "tooltip");
  tip.setAttribute("popover", "manual");
  tip.textContent = host.dataset.tooltip;
  (host.closest("dialog[open]") ?? document.body).append(tip);
  if (!tip.matches(":popover-open")) tip.showPopover();
  placeBeside(tip, host, host.dataset.place ?? "top-center");
}

function hideTip() {
  clearTimeout(tipTimer);
  if (tip?.isConnected && tip.matches(":popover-open")) tip.hidePopover();
}

on("pointerover", "[data-tooltip]", (event, host) => {
  if (event.pointerType === "touch") return;
  clearTimeout(tipTimer);
  tipTimer = setTimeout(() => host.isConnected && showTip(host), 400);
});
on("pointerout", "[data-tooltip]", hideTip);
on("focusin", "[data-tooltip]", (_event, host) => host.matches(":focus-visible") && showTip(host));
on("focusout", "[data-tooltip]", hideTip);
on("pointerdown", "[data-tooltip]", hideTip);
export { hideTip };
