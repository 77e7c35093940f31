import { icon, on } from "./dom.js";
import { say } from "./i18n.js";

const ICONS = { info: "info", success: "approve", warning: "alert", danger: "error" };
const SHOWN_MS = { info: 5000, success: 5000, warning: 9000, danger: 0 };
const region = () => document.getElementById("toasts");

/**
 * Shows a short message. kind: info | success | warning | danger. A danger toast stays until it is closed.
 * undoUrl adds a button that POSTs there; undoEvent one that dispatches that event on the document instead.
 */
export function toast({ text, kind = "info", detail = "", undoUrl = "", undoEvent = "", undoLabel = "", seconds = null }) {
  const box = region();
  if (!box || !text) return null;
  const element = document.createElement("div");
  element.className = `toast tone--${kind in ICONS ? kind : "info"}`;
  element.setAttribute("role", kind === "danger" || kind === "warning" ? "alert" : "status");
  const body = document.createElement("div");
  body.className = "toast__text";
  body.append(text);
  if (detail) {
    const small = document.createElement("div");
    small.className = "toast__detail";
    small.textContent = detail;
    body.append(small);
  }
  const actions = document.createElement("div");
  actions.className = "toast__actions";
  if (undoUrl || undoEvent) actions.append(undoButton(element, undoUrl, undoEvent, undoLabel));
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button button--quiet button--icon button--s";
  close.setAttribute("aria-label", say("toast.dismiss"));
  close.dataset.toastClose = "";
  close.append(icon("close", "icon--s"));
  actions.append(close);
  element.append(icon(ICONS[kind] ?? "info"), body, actions);
  box.append(element);
  while (box.children.length > 4) box.firstElementChild.remove();
  raise(box);
  arm(element, seconds === null ? (undoUrl || undoEvent ? 9000 : SHOWN_MS[kind]) : seconds * 1000);
  return element;
}

function undoButton(element, url, event, label) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button button--quiet button--s";
  button.textContent = label || say("toast.undo");
  button.addEventListener("click", async () => {
    element.remove();
    if (event) document.dispatchEvent(new CustomEvent(event, { bubbles: true }));
    if (url) (await import("./htmx.js")).htmx.ajax("POST", url, { source: document.body, swap: "none" });
  });
  return button;
}

/** Keeps the region above dialogs opened later: the top layer is ordered by the time of showing. */
function raise(box) {
  if (!box.showPopover) return;
  if (box.matches(":popover-open")) box.hidePopover();
  box.showPopover();
}

function arm(element, milliseconds) {
  if (!milliseconds) return;
  let timer = setTimeout(() => element.remove(), milliseconds);
  // Someone reading or aiming at the button keeps it.
  for (const type of ["pointerenter", "focusin"]) element.addEventListener(type, () => clearTimeout(timer));
  for (const type of ["pointerleave", "focusout"]) {
    element.addEventListener(type, () => {
      clearTimeout(timer);
      timer = setTimeout(() => element.remove(), 3000);
    });
  }
}

on("click", "[data-toast-close]", (_event, button) => button.closest(".toast").remove());

// The server says it with HX-Trigger: {"toast": {"text": ..., "kind": ..., "undo_url": ..., "undo_label": ...}}; a list shows several.
document.addEventListener("toast", (event) => {
  const value = event.detail?.value ?? event.detail;
  const list = Array.isArray(value) ? value : [value];
  for (const item of list) {
    const message = typeof item === "string" ? { text: item } : item;
    toast({ ...message, undoUrl: message.undo_url ?? message.undoUrl, undoLabel: message.undo_label ?? message.undoLabel });
  }
});

// Messages rendered with the page leave like the others.
const present = region();
if (present?.children.length) {
  raise(present);
  for (const element of present.children) arm(element, element.classList.contains("tone--danger") ? 0 : 7000);
}
