// What the documents tab does in the browser beyond htmx: the shared row menu, archives, the open folder in
// links of the head, tags with three states.
import { csrfToken, on, parseJson, reasonOf } from "../core/dom.js";
import { say } from "../core/i18n.js";
import { placeBeside } from "../core/overlays.js";
import { toast } from "../core/toast.js";

let opener = null;

// The menu opens empty and is filled by the server: what an earlier row may do must never be shown for this one.
on(
  "click",
  '[popovertarget="row-menu"]',
  (_event, button) => {
    opener = button;
    document.getElementById("row-menu")?.replaceChildren();
  },
  true,
);

on("htmx:afterSwap", "#row-menu", (_event, menu) => {
  if (!menu.matches(":popover-open") || !opener?.isConnected) return;
  placeBeside(menu, opener, menu.dataset.place);
  menu.querySelector('[role^="menuitem"]')?.focus({ focusVisible: false });
});

// A row that polling replaced takes its open menu's button along; the menu itself lives outside and stays.
on("click", "[data-press]", (_event, button) => document.querySelector(button.dataset.press)?.click());

on("click", "a[data-with-folder]", (_event, link) => {
  const folder = document.getElementById("list-folder")?.value;
  const url = new URL(link.href);
  if (folder) url.searchParams.set("folder", folder);
  else url.searchParams.delete("folder");
  link.href = url.pathname + url.search;
});

on("click", "[data-archive-url]", async (_event, button) => {
  if (button.hasAttribute("aria-busy")) return;
  const ids = JSON.parse(button.dataset.archiveIds);
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(button.dataset.archiveUrl, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken(), "X-Tenant-ID": button.dataset.archiveSpace, Accept: "application/zip, application/json" },
      body: JSON.stringify({ ids }),
    });
    if (!answer.ok) {
      toast({ kind: "danger", text: reasonOf(parseJson(await answer.text())) || say("error.invalid") });
      return;
    }
    const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? "documents.zip";
    const address = URL.createObjectURL(await answer.blob());
    Object.assign(document.createElement("a"), { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    button.closest("dialog")?.close();
  } catch {
    toast({ kind: "danger", text: say("error.network") });
  } finally {
    button.removeAttribute("aria-busy");
  }
});

// Tags that some of the chosen documents carry start half set: untouched they change nothing.
function paintChoices(root) {
  for (const choice of root.querySelectorAll?.('[data-tag-choice="some"]') ?? []) choice.querySelector('[name="on"]').indeterminate = true;
}
document.addEventListener("htmx:load", (event) => paintChoices(event.target));
paintChoices(document);
on("change", '[data-tag-choice] [name="on"]', (_event, box) => {
  box.closest("[data-tag-choice]").querySelector("[data-tag-off]").checked = !box.checked;
});

on("click", "a[data-discard]", (_event, link) => {
  const form = link.closest("form");
  if (form) form.dataset.leaving = "";
  if (form?.dataset.guard) localStorage.removeItem(`kb:draft:${form.dataset.guard}`);
});
