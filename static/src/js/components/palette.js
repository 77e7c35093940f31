// x-data="palette" on the command palette: commands are filtered here, results come from the server by htmx. What was searched lately
// stays in this browser and is offered while nothing is typed, here and on the search page.
import { eachAdded, icon, on, store } from "../core/dom.js";

const RECENT = "kb:searches";
const KEPT = 8;
const recent = () => (store("localStorage", RECENT) ?? []).filter((query) => typeof query === "string");

export function remember(query) {
  const text = query.trim().slice(0, 200);
  if (text) store("localStorage", RECENT, [text, ...recent().filter((each) => each !== text)].slice(0, KEPT));
}

on("submit", "[data-remember-query]", (_event, form) => remember(form.elements.q?.value ?? ""));

eachAdded("[data-recent-queries]", (box) => {
  const list = box.querySelector(".recent-queries__list");
  for (const query of recent()) {
    const link = Object.assign(document.createElement("a"), { className: "button button--s", textContent: query, href: `?q=${encodeURIComponent(query)}` });
    list.append(link);
  }
  box.hidden = !list.children.length;
});

const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();

export const palette = () => ({
  active: 0,

  init() {
    this.$root.addEventListener("htmx:afterSettle", () => this.reset());
    this.$root.addEventListener("click", (event) => event.target.closest("a.option") && remember(this.$refs.input.value));
    // Selected as it gets the focus: "toggle" comes later, when the first keys may have been typed, and would let the next replace them.
    this.$root.addEventListener("beforetoggle", (event) => {
      if (event.newState === "open") this.$refs.input.addEventListener("focus", () => this.$refs.input.select(), { once: true });
    });
    this.$root.addEventListener("toggle", () => {
      this.offerRecent();
      this.typed();
    });
  },

  /** Earlier searches, while the field is empty. */
  offerRecent() {
    const results = this.$root.querySelector("#palette-results");
    if (this.$refs.input.value.trim() || !results) return;
    results.replaceChildren(
      ...recent().map((query) => {
        const option = Object.assign(document.createElement("button"), { type: "button", className: "option option--recent", tabIndex: -1 });
        option.setAttribute("role", "option");
        const text = Object.assign(document.createElement("span"), { className: "truncate", textContent: query });
        option.append(icon("history"), text);
        option.addEventListener("click", () => {
          this.$refs.input.value = query;
          this.$refs.input.dispatchEvent(new Event("input", { bubbles: true }));
          this.$refs.input.focus();
        });
        return option;
      }),
    );
  },

  options() {
    return [...this.$root.querySelectorAll('[role="option"]')].filter((option) => option.checkVisibility());
  },

  typed() {
    this.offerRecent();
    const wanted = fold(this.$refs.input.value.trim());
    for (const group of this.$root.querySelectorAll("[data-commands]")) {
      let any = false;
      for (const option of group.querySelectorAll('[role="option"]')) {
        option.hidden = wanted !== "" && !fold(option.textContent).includes(wanted);
        any ||= !option.hidden;
      }
      group.hidden = !any;
    }
    this.reset();
  },

  reset() {
    this.active = 0;
    this.paint();
  },

  paint() {
    const all = this.options();
    for (const option of this.$root.querySelectorAll('[role="option"]')) option.setAttribute("aria-selected", "false");
    const option = all[this.active];
    const input = this.$refs.input;
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.id ||= `palette-option-${this.active}-${all.length}`;
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", option.id);
  },

  key(event) {
    if (event.isComposing) return;
    const all = this.options();
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!all.length) return;
      this.active = (this.active + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length;
      this.paint();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const option = all[this.active];
      if (option?.href) remember(this.$refs.input.value);
      option?.click();
      if (option && !option.href && !option.matches(".option--recent")) this.$root.close();
    }
  },
});
