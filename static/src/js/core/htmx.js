import htmx from "htmx.org";
import { csrfToken, on, parseJson, reasonOf } from "./dom.js";
import { say } from "./i18n.js";
import { openDialog } from "./overlays.js";
import { toast } from "./toast.js";

Object.assign(htmx.config, {
  allowEval: false,
  allowScriptTags: false,
  includeIndicatorStyles: false,
  attributesToSettle: ["class", "width", "height"], // not style: the content security policy refuses it as an attribute
  selfRequestsOnly: true,
  // Snapshots of pages would stay in the browser after signing out; going back asks the server again instead.
  historyCacheSize: 0,
  refreshOnHistoryMiss: true,
  defaultSettleDelay: 0,
  // Not "style": copying it from the old element to the new one is an inline style, which the content policy refuses.
  attributesToSettle: ["class"],
  scrollBehavior: "auto",
  // 422 carries a form with its errors: it is shown. Every other error leaves the page as it is and becomes a toast.
  responseHandling: [
    { code: "204", swap: false },
    { code: "[23]..", swap: true },
    { code: "422", swap: true },
    { code: "[45]..", swap: false, error: true },
  ],
});

document.addEventListener("htmx:configRequest", (event) => {
  const { verb, headers } = event.detail;
  if (verb !== "get") headers["X-CSRFToken"] = csrfToken();
});

// The page shows that it waits only when waiting becomes noticeable.
let running = 0;
let timer = 0;
function count(change) {
  running = Math.max(0, running + change);
  clearTimeout(timer);
  if (running) timer = setTimeout(() => (document.documentElement.dataset.busy = ""), 150);
  else delete document.documentElement.dataset.busy;
}
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!event.detail.elt.closest("[data-poll]")) count(1);
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.elt.closest("[data-poll]")) count(-1);
});

/** Sends a signed-out person to sign in and back to this page afterwards, unless something here would be lost by leaving (kb:signed-out). */
export function goSignIn() {
  if (!document.body.dispatchEvent(new CustomEvent("kb:signed-out", { bubbles: true, cancelable: true }))) return;
  const url = document.body.dataset.signInUrl;
  if (!url) return;
  const back = location.pathname + location.search;
  location.assign(`${url}${url.includes("?") ? "&" : "?"}next=${encodeURIComponent(back)}`);
}

const SENTENCES = { 400: "error.invalid", 403: "error.forbidden", 404: "error.missing", 409: "error.conflict", 413: "error.large", 429: "error.busy" };

/** What to tell the person about a failed answer: the server's own sentence if it gave one. */
export function failureText(xhr) {
  const type = xhr.getResponseHeader("Content-Type") ?? "";
  const own = type.includes("json")
    ? reasonOf(parseJson(xhr.responseText))
    : new DOMParser().parseFromString(xhr.responseText, "text/html").querySelector("[data-error-message]")?.textContent.trim();
  return own || say(SENTENCES[xhr.status] ?? (xhr.status >= 500 ? "error.server" : "error.invalid"));
}

document.addEventListener("htmx:responseError", (event) => {
  const { xhr, elt } = event.detail;
  if (elt.closest("[data-poll]")) return;
  if (xhr.status === 401) return goSignIn();
  // A toast sent with the answer says it better than we can.
  if (/"?toast"?/.test(xhr.getResponseHeader("HX-Trigger") ?? "")) return;
  toast({ kind: "danger", text: failureText(xhr), detail: say("error.details", { status: xhr.status }) });
});

for (const type of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(type, (event) => {
    if (!event.detail.elt.closest("[data-poll]")) toast({ kind: "danger", text: say("error.network") });
  });
}

// After a swap the first invalid field gets the focus, as after a full page load.
document.addEventListener("htmx:afterSettle", (event) => {
  event.detail.target?.querySelector?.('[aria-invalid="true"]')?.focus();
});

// hx-confirm opens our dialog when it names one (#id); otherwise the browser asks.
document.addEventListener("htmx:confirm", (event) => {
  const question = event.detail.question;
  if (!question?.startsWith("#")) return;
  const dialog = document.querySelector(question);
  if (!(dialog instanceof HTMLDialogElement)) return;
  event.preventDefault();
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener("close", () => dialog.returnValue === "confirm" && event.detail.issueRequest(true), { once: true });
});

// A link or button without form data may open a dialog that the server renders. A dialog that is merely taken out of the page
// gives the focus back to nobody, so the old one closes first.
on("htmx:beforeSwap", "[data-dialog-slot]", (event, slot) => {
  if (event.detail.shouldSwap) slot.querySelector("dialog[open]")?.close();
});
on("htmx:afterSwap", "[data-dialog-slot]", (_event, slot) => openDialog(slot.querySelector("dialog")));

export { htmx };
