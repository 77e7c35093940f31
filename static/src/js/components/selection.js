// x-data="selection" on the element that holds list and selection bar. data-selection="<key>" remembers the choice across
// paging and sorting for as long as the tab lives; data-selection-total tells how many match in all.
import { announce, store } from "../core/dom.js";
import { say } from "../core/i18n.js";

export const selection = () => ({
  ids: [],
  everything: false,
  last: null,

  get key() {
    return `kb:selection:${this.$root.dataset.selection || location.pathname}`;
  },
  get total() {
    return Number(this.$root.dataset.selectionTotal) || 0;
  },
  get count() {
    return this.everything ? this.total : this.ids.length;
  },
  get countText() {
    return say("select.page", { count: this.count.toLocaleString() });
  },
  get some() {
    return this.count > 0;
  },
  get mayTakeAll() {
    return !this.everything && this.total > this.ids.length && this.boxes().length > 0 && this.boxes().every((box) => box.checked);
  },

  init() {
    this.ids = store("sessionStorage", this.key) ?? [];
    const root = this.$root;
    root.addEventListener("click", (event) => this.clicked(event));
    root.addEventListener("change", (event) => this.changed(event));
    root.addEventListener("htmx:afterSettle", () => this.paint());
    root.addEventListener("htmx:configRequest", (event) => this.attach(event));
    root.addEventListener("submit", (event) => this.attachForm(event.target), true);
    root.kbSelected = () => ({ ids: [...this.ids], everything: this.everything });
    this.finished = () => this.none();
    document.body.addEventListener("kb:selection-done", this.finished);
    this.dropped = (event) => this.drop(event.detail.id);
    document.body.addEventListener("kb:row-gone", this.dropped);
    this.paint();
  },

  destroy() {
    document.body.removeEventListener("kb:selection-done", this.finished);
    document.body.removeEventListener("kb:row-gone", this.dropped);
  },

  boxes() {
    return [...this.$root.querySelectorAll("[data-select-id]")];
  },

  /** Shift-click takes the whole range between the last box and this one. */
  clicked(event) {
    const box = event.target.closest("[data-select-id]");
    if (!box) return;
    const all = this.boxes();
    const from = all.findIndex((each) => each.dataset.selectId === this.last);
    const to = all.indexOf(box);
    if (event.shiftKey && from >= 0) {
      for (const each of all.slice(Math.min(from, to), Math.max(from, to) + 1)) this.put(each.dataset.selectId, box.checked);
      this.save();
    }
    this.last = box.dataset.selectId;
  },

  changed(event) {
    const box = event.target;
    if (box.matches("[data-select-all]")) for (const each of this.boxes()) this.put(each.dataset.selectId, box.checked);
    else if (box.matches("[data-select-id]")) this.put(box.dataset.selectId, box.checked);
    else return;
    this.save();
  },

  put(id, chosen) {
    this.everything = false;
    if (chosen && !this.ids.includes(id)) this.ids.push(id);
    if (!chosen) this.ids = this.ids.filter((each) => each !== id);
  },

  /** Something that was deleted is not selected any more; "all that match" stays as it is. */
  drop(id) {
    if (!this.ids.includes(id)) return;
    this.ids = this.ids.filter((each) => each !== id);
    this.save();
  },

  takeAll() {
    this.everything = true;
    this.save();
  },

  none() {
    this.ids = [];
    this.everything = false;
    this.save();
  },

  save() {
    store("sessionStorage", this.key, this.ids.length ? this.ids : null);
    this.paint();
    announce(this.countText);
  },

  paint() {
    const all = this.boxes();
    for (const box of all) {
      box.checked = this.everything || this.ids.includes(box.dataset.selectId);
      box.closest("[data-row]")?.toggleAttribute("data-selected", box.checked);
    }
    const chosen = all.filter((box) => box.checked).length;
    for (const head of this.$root.querySelectorAll("[data-select-all]")) {
      head.checked = all.length > 0 && chosen === all.length;
      head.indeterminate = chosen > 0 && chosen < all.length;
    }
  },

  /** Whatever is sent from the selection bar carries the ids, or all=1 when everything that matches is meant. */
  attach(event) {
    if (!event.detail.elt.closest("[data-selection-send]")) return;
    const { parameters } = event.detail;
    if (this.everything) parameters.all = "1";
    else parameters[event.detail.elt.closest("[data-selection-send]").dataset.selectionSend || "ids"] = [...this.ids];
  },

  attachForm(form) {
    const holder = form.closest("[data-selection-send]");
    if (!holder) return;
    form.querySelectorAll("[data-selection-value]").forEach((input) => input.remove());
    const pairs = this.everything ? [["all", "1"]] : this.ids.map((id) => [holder.dataset.selectionSend || "ids", id]);
    for (const [name, value] of pairs) {
      const input = Object.assign(document.createElement("input"), { type: "hidden", name, value });
      input.dataset.selectionValue = "";
      form.append(input);
    }
  },
});
