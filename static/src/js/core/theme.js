import { csrfToken, on } from "./dom.js";

const root = document.documentElement;

/** Pins light or dark, or follows the system; remembered in a cookie so that the server renders the right one at once. */
export function setTheme(theme) {
  if (!["light", "dark", "system"].includes(theme)) return;
  root.dataset.theme = theme;
  document.cookie = `kb_theme=${theme}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
  mark();
  document.dispatchEvent(new CustomEvent("kb:theme", { detail: { theme } }));
}

export const isDark = () =>
  root.dataset.theme === "dark" || (root.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

function mark() {
  for (const button of document.querySelectorAll("[data-theme-set]")) {
    const state = button.getAttribute("role") === "menuitemradio" ? "aria-checked" : "aria-pressed";
    button.setAttribute(state, String(button.dataset.themeSet === (root.dataset.theme || "system")));
  }
}

// The person's other browsers start with the last choice; this one has its cookie, so a request that fails costs nothing.
function keep(theme) {
  const url = document.body.dataset.appearanceUrl;
  if (url) fetch(url, { method: "POST", body: new URLSearchParams({ theme }), headers: { "X-CSRFToken": csrfToken(), "HX-Request": "true" } }).catch(() => {});
}

on("click", "[data-theme-set]", (_event, button) => {
  setTheme(button.dataset.themeSet);
  keep(button.dataset.themeSet);
});
mark();
