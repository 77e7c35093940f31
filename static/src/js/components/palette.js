// x-data="palette" on the command palette: commands are filtered here, results come from the server by htmx.
const fold = (text) => text.normalize("NFKC").toLocaleLowerCase();

export const palette = () => ({
  active: 0,

  init() {
    this.$root.addEventListener("htmx:afterSettle", () => this.reset());
    this.$root.addEventListener("toggle", () => {
      if (this.$root.open) this.$refs.input.select();
      this.typed();
    });
  },

  options() {
    return [...this.$root.querySelectorAll('[role="option"]')].filter((option) => option.checkVisibility());
  },

  typed() {
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
      all[this.active]?.click();
      if (all[this.active] && !all[this.active].href) this.$root.close();
    }
  },
});
