import { announce, on } from "./dom.js";
import { say } from "./i18n.js";
import { toast } from "./toast.js";

/** Puts text on the clipboard; works on plain http too, where the clipboard API is absent. */
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // permission refused: the older way below may still work
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

on("click", "[data-copy], [data-copy-from]", async (_event, button) => {
  const source = button.dataset.copyFrom ? document.querySelector(button.dataset.copyFrom) : null;
  const text = button.dataset.copy ?? source?.value ?? source?.textContent ?? "";
  if (!(await copyText(text))) return toast({ kind: "warning", text: say("copy.failed") });
  const use = button.querySelector("use");
  const before = use?.getAttribute("href");
  use?.setAttribute("href", before.replace(/#.*/, "#check"));
  announce(say("copy.done"));
  button.focus();
  setTimeout(() => use?.setAttribute("href", before), 1500);
});
