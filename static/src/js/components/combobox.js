// x-data="combobox" on components/combobox.html: filters a list of options, one or many, optionally asked from the server
// (data-combobox-url answers {"results": [{"value", "label", "note"}]}). Values are sent as hidden inputs.
import { parseJson } from "../core/dom.js";

const fold = (text) => String(text).normalize("NFKC").toLocaleLowerCase();

export const combobox = () => ({
  options: [],
  chosen: [],
  query: "",
  open: false,
  active: -1,
  timer: 0,

  init() {
    const data = parseJson(this.$root.dataset.options) ?? {};
    this.options = data.options ?? [];
    this.chosen = data.chosen ?? [];
    if (!this.many && this.chosen[0]) this.query = this.chosen[0].label;
  },

  get many() {
    return this.$root.dataset.many === "true";
  },
  get mayCreate() {
    return this.$root.dataset.create === "true" && this.query.trim() !== "" && !this.options.some((option) => fold(option.label) === fold(this.query.trim()));
  },
  get shown() {
    const taken = new Set(this.chosen.map((option) => String(option.value)));
    const wanted = !this.many && this.chosen[0]?.label === this.query ? "" : fold(this.query.trim());
    return this.options
      .filter((option) => (!this.many || !taken.has(String(option.value))) && fold(option.label).includes(wanted))
      .slice(0, 100)
      .map((option, index) => ({ ...option, id: `${this.$root.id}-o${index}`, index }));
  },
  get activeId() {
    return this.open && this.active >= 0 && this.shown[this.active] ? this.shown[this.active].id : null;
  },
  get nothing() {
    return this.shown.length === 0 && !this.mayCreate;
  },

  typed() {
    this.open = true;
    this.active = this.shown.length ? 0 : -1;
    if (!this.many && this.query === "") this.chosen = [];
    const url = this.$root.dataset.comboboxUrl;
    if (!url) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(url), 150);
  },

  async ask(url) {
    const asked = this.query;
    const answer = await fetch(`${url}${url.includes("?") ? "&" : "?"}q=${encodeURIComponent(asked)}`, { headers: { Accept: "application/json" } }).catch(() => null);
    if (!answer?.ok || asked !== this.query) return;
    this.options = (await answer.json()).results ?? [];
  },

  show() {
    this.open = true;
  },
  hide() {
    this.open = false;
    this.active = -1;
    if (!this.many) this.query = this.chosen[0]?.label ?? "";
  },
  hideSoon(event) {
    if (!this.$root.contains(event.relatedTarget)) this.hide();
  },

  take(option) {
    const plain = { value: option.value, label: option.label };
    this.chosen = this.many ? [...this.chosen, plain] : [plain];
    this.query = this.many ? "" : option.label;
    this.open = false;
    this.active = -1;
    this.changed();
  },
  create() {
    const label = this.query.trim();
    this.take({ value: label, label });
  },
  drop(option) {
    this.chosen = this.chosen.filter((each) => each.value !== option.value);
    this.changed();
    this.$refs.input.focus();
  },
  changed() {
    this.$nextTick(() => this.$root.dispatchEvent(new Event("change", { bubbles: true })));
  },

  key(event) {
    const last = this.shown.length - 1;
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.open = true;
      this.active = event.key === "ArrowDown" ? Math.min(last, this.active + 1) : Math.max(0, this.active - 1);
      this.$nextTick(() => document.getElementById(this.activeId)?.scrollIntoView({ block: "nearest" }));
    } else if (event.key === "Enter" && this.open && (this.active >= 0 || this.mayCreate)) {
      event.preventDefault();
      if (this.active >= 0 && this.shown[this.active]) this.take(this.shown[this.active]);
      else this.create();
    } else if (event.key === "Escape" && this.open) {
      event.preventDefault();
      event.stopPropagation();
      this.hide();
    } else if (event.key === "Backspace" && this.many && this.query === "" && this.chosen.length) {
      this.drop(this.chosen.at(-1));
    }
  },
});
