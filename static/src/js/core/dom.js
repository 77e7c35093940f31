/** Calls handler(event, element) when `type` happens inside an element matching `selector`, now or later in the page's life. */
export function on(type, selector, handler, options) {
  document.addEventListener(
    type,
    (event) => {
      const element = event.target instanceof Element ? event.target.closest(selector) : null;
      if (element) handler(event, element);
    },
    options,
  );
}

/** Runs for every matching element present now and in every fragment htmx brings in. */
export function eachAdded(selector, run) {
  const visit = (root) => {
    if (root.matches?.(selector)) run(root);
    for (const element of root.querySelectorAll?.(selector) ?? []) run(element);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => visit(document.body));
  else visit(document.body);
  document.addEventListener("htmx:load", (event) => {
    if (event.target !== document.body) visit(event.target);
  });
}

/** The cookie's token first: signing in again, in another tab too, changes it, and the one this page was made with is worth nothing then. */
export const csrfToken = () => /(?:^|;\s*)kb_csrf=([^;]*)/.exec(document.cookie)?.[1] || (document.querySelector('meta[name="csrf-token"]')?.content ?? "");

export const isTyping = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || (target.matches("input, textarea, select") && !target.matches('[type="checkbox"], [type="radio"], [type="button"]')));

const FOCUSABLE = 'a[href], button:not(:disabled), input:not(:disabled, [type="hidden"]), select:not(:disabled), textarea:not(:disabled), [tabindex="0"]';

export const focusables = (root) => [...root.querySelectorAll(FOCUSABLE)].filter((element) => element.checkVisibility());

/** An icon of the sprite, for markup made in the browser. */
export function icon(name, modifier = "") {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", `icon ${modifier}`.trim());
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${document.querySelector('meta[name="icon-sprite"]')?.content ?? ""}#${name}`);
  svg.append(use);
  return svg;
}

/** Says a sentence to screen readers without showing it. */
export function announce(text) {
  const region = document.getElementById("live-region");
  if (!region) return;
  region.textContent = "";
  requestAnimationFrame(() => (region.textContent = text));
}

/** Storage that may be full, blocked or absent: then nothing is remembered and nothing breaks. */
export function store(area, key, value) {
  try {
    const storage = window[area];
    if (value === undefined) return JSON.parse(storage.getItem(key) ?? "null");
    if (value === null) storage.removeItem(key);
    else storage.setItem(key, JSON.stringify(value));
  } catch {
    // a private window or a full disk; the page works without
  }
  return null;
}

/** The sentence a person should read, out of any of the server's error shapes. */
export function reasonOf(body) {
  if (!body || typeof body !== "object") return "";
  if (typeof body.error === "string") return body.error;
  return body.error?.message || body.message || body.detail || "";
}

export function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
