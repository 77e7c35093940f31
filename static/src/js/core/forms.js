// Forms: one submit at a time, counters, password reveal, and with data-guard="<key>" also drafts that survive reloads and
// expired sessions, and a question before unsaved text is left behind.
import { csrfToken, eachAdded, on, store } from "./dom.js";
import { say } from "./i18n.js";
import { toast } from "./toast.js";

const DRAFT = "kb:draft:";
const SENT = "kb:draft-sent";
const keyOf = (form) => DRAFT + form.dataset.guard;
const keeps = (field) => field.name && !field.matches('[type="password"], [type="file"], [type="hidden"], [type="submit"], [data-no-draft]');

function valuesOf(form) {
  const values = {};
  for (const field of form.elements) {
    if (!keeps(field)) continue;
    const value = field.matches('[type="checkbox"], [type="radio"]') ? (field.checked ? field.value : null) : field.value;
    (values[field.name] ??= []).push(value);
  }
  return values;
}

function fill(form, values) {
  const seen = {};
  for (const field of form.elements) {
    if (!keeps(field) || !(field.name in values)) continue;
    const index = (seen[field.name] = (seen[field.name] ?? -1) + 1);
    const value = values[field.name][index];
    if (field.matches('[type="checkbox"], [type="radio"]')) field.checked = value !== null && value !== undefined;
    else if (typeof value === "string") field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

let saving = 0;
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function guard(form) {
  if (form.dataset.guarded) return;
  form.dataset.guarded = "1";
  const first = valuesOf(form);
  form.kbFirst = first;
  const invalid = form.querySelector('[aria-invalid="true"]');
  if (invalid) {
    // The server gave back what was typed: that is the newest state.
    form.dataset.dirty = "";
    return;
  }
  const draft = store("localStorage", keyOf(form));
  if (!draft || same(draft.values, first)) return;
  fill(form, draft.values);
  form.dataset.dirty = "";
  toast({ text: say("draft.restored"), undoEvent: `kb:discard:${form.dataset.guard}`, undoLabel: say("draft.discard") });
  document.addEventListener(
    `kb:discard:${form.dataset.guard}`,
    () => {
      fill(form, first);
      clear(form);
    },
    { once: true },
  );
}

function clear(form) {
  clearTimeout(saving);
  delete form.dataset.dirty;
  if (form.dataset.guard) store("localStorage", keyOf(form), null);
}

on("input", "form[data-guard]", (_event, form) => {
  if (same(valuesOf(form), form.kbFirst)) return clear(form);
  form.dataset.dirty = "";
  clearTimeout(saving);
  saving = setTimeout(() => form.dataset.guard && store("localStorage", keyOf(form), { values: valuesOf(form), at: Date.now() }), 250);
});

// A plain submit that succeeded lands on another page: there the draft goes. Landing on sign-in keeps it.
function settleSent() {
  const sent = store("sessionStorage", SENT);
  if (!sent || document.body.dataset.page === "auth") return;
  store("sessionStorage", SENT, null);
  const again = document.querySelector(`form[data-guard="${CSS.escape(sent)}"]`);
  if (!again?.querySelector('[aria-invalid="true"]')) store("localStorage", DRAFT + sent, null);
}

function lock(form, locked) {
  for (const button of form.querySelectorAll('button[type="submit"], button:not([type])')) {
    if (locked) button.setAttribute("aria-busy", "true");
    else button.removeAttribute("aria-busy");
  }
  if (locked) form.dataset.running = "";
  else delete form.dataset.running;
}

document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (form.method === "dialog") return;
    // Double clicks and impatient Enter send nothing twice.
    if ("running" in form.dataset) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    // A dialog's form that was opened by its own address has no dialog to answer into: it is sent as any form of a page.
    const alone = form.matches('[hx-target="#dialog-slot"]') && !document.getElementById("dialog-slot");
    if (alone) event.stopPropagation();
    const ours = !alone && form.matches("[hx-post], [hx-put], [hx-patch], [hx-delete], [hx-get], [data-hx-post]");
    if (form.method.toLowerCase() === "post") {
      const token = form.querySelector('[name="csrfmiddlewaretoken"]');
      if (token && csrfToken()) token.value = csrfToken();
    }
    lock(form, true);
    if (ours) return;
    if (form.dataset.guard) {
      store("localStorage", keyOf(form), { values: valuesOf(form), at: Date.now() });
      store("sessionStorage", SENT, form.dataset.guard);
    }
    form.dataset.leaving = "";
  },
  true,
);

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt.closest?.("form");
  if (!form) return;
  lock(form, false);
  if (event.detail.successful && event.detail.requestConfig.verb !== "get") clear(form);
});
// The answer may hold the same form again, empty: it must not find the draft of what was just taken.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { elt, xhr, requestConfig } = event.detail;
  const form = elt.closest?.("form");
  if (form && xhr.status < 400 && requestConfig.verb !== "get") clear(form);
});
for (const type of ["htmx:validation:halted", "htmx:sendAbort"]) document.addEventListener(type, (event) => lock(event.target, false));

// Coming back by the browser's own memory must not find a locked form.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-running]")) {
    lock(form, false);
    delete form.dataset.leaving;
  }
});

addEventListener("beforeunload", (event) => {
  if (document.querySelector("form[data-guard][data-dirty]:not([data-leaving])")) event.preventDefault();
});

on("click", "[data-reveal]", (_event, button) => {
  const field = document.getElementById(button.dataset.reveal);
  const shown = field.type === "password";
  field.type = shown ? "text" : "password";
  button.setAttribute("aria-pressed", String(shown));
  const use = button.querySelector("use");
  use?.setAttribute("href", use.getAttribute("href").replace(/#.*/, shown ? "#eye-off" : "#eye"));
});

const encoder = new TextEncoder();

/** Counts in the unit the server limits by: characters (code points), bytes or utf16 (code units). */
function tally(field) {
  const counter = document.getElementById(`${field.id}-count`);
  if (!counter) return;
  const units = { bytes: () => encoder.encode(field.value).length, utf16: () => field.value.length };
  const length = units[field.dataset.countUnit]?.() ?? [...field.value].length;
  const limit = Number(field.dataset.countLimit);
  counter.textContent = `${length.toLocaleString()} / ${limit.toLocaleString()}`;
  counter.toggleAttribute("data-over", length > limit);
}

// Times a person writes are meant where that person is.
eachAdded("[data-time-zone]", (field) => {
  if (!field.value) field.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
});

on("input", "[data-count-limit]", (_event, field) => tally(field));
eachAdded("[data-count-limit]", tally);
// First what was sent, then what is left: a form that arrived must not come back as a draft.
settleSent();
eachAdded("form[data-guard]", guard);
document.querySelector('main [aria-invalid="true"]')?.focus();
