// x-data="pdfViewer" data-src="..." data-page="3" data-highlights='[{"page": 3, "x": 0.1, "y": 0.2, "w": 0.5, "h": 0.04}]'
// Highlights are fractions of the page from its top left corner. The window event kb:pdf-goto {page, highlights} moves it later,
// kb:pdf-mark {highlights} only changes what is highlighted.
// pdf.js itself is a lazy chunk; pages are drawn when they come near the view and given back when they are far away.
import { parseJson } from "../core/dom.js";
import { say } from "../core/i18n.js";

const assets = () => new URL(`${PDFJS_FOLDER}/`, import.meta.url).href;
const KEEP_PAGES = 8;
let library = null;

function loadLibrary() {
  library ??= import("pdfjs-dist/legacy/build/pdf.mjs").then((pdfjs) => {
    // A module worker from our own origin; the content policy allows nothing else.
    pdfjs.GlobalWorkerOptions.workerPort = new Worker(`${assets()}worker.js`, { type: "module" });
    return pdfjs;
  });
  return library;
}

export const pdfViewer = () => {
  // pdf.js objects keep private fields, which a reactive proxy would break: they stay outside of the component's state.
  const held = { pdfjs: null, file: null, sizes: [], pages: [], observer: null, hits: [], drawn: [], resize: null, goto: null, show: null };

  return {
    page: 1,
    total: 0,
    zoom: 1,
    state: "loading",
    message: "",

    get ready() {
      return this.state === "ready";
    },
    get loading() {
      return this.state === "loading";
    },
    get broken() {
      return this.state === "failed";
    },
    get zoomText() {
      return `${Math.round(this.zoom * 100)}%`;
    },

    async init() {
      held.hits = parseJson(this.$root.dataset.highlights ?? "") ?? [];
      const first = Number(this.$root.dataset.page) || held.hits[0]?.page || 1;
      try {
        held.pdfjs = await loadLibrary();
        held.file = await held.pdfjs.getDocument({
          url: this.$root.dataset.src,
          cMapUrl: `${assets()}cmaps/`,
          cMapPacked: true,
          standardFontDataUrl: `${assets()}standard_fonts/`,
          wasmUrl: `${assets()}wasm/`,
          iccUrl: `${assets()}iccs/`,
          enableXfa: false,
        }).promise;
      } catch (error) {
        this.state = "failed";
        this.message = say(error?.name === "PasswordException" ? "pdf.locked" : "pdf.failed");
        return;
      }
      this.total = held.file.numPages;
      const sample = (await held.file.getPage(Math.min(first, this.total))).getViewport({ scale: 1 });
      held.sizes = Array.from({ length: this.total }, () => ({ width: sample.width, height: sample.height }));
      this.state = "ready";
      this.$nextTick(() => this.layOut(first));
      held.goto = (event) => this.go(event.detail.page, event.detail.highlights);
      window.addEventListener("kb:pdf-goto", held.goto);
      held.show = (event) => {
        held.hits = event.detail.highlights;
        held.drawn.forEach((each) => this.mark(each));
      };
      window.addEventListener("kb:pdf-mark", held.show);
    },

    destroy() {
      held.observer?.disconnect();
      held.resize?.disconnect();
      if (held.goto) window.removeEventListener("kb:pdf-goto", held.goto);
      if (held.show) window.removeEventListener("kb:pdf-mark", held.show);
      held.file?.loadingTask.destroy();
    },

    /** Empty boxes of the right size first, so that scrolling and jumping are exact before anything is drawn. */
    layOut(first) {
      const box = this.$refs.pages;
      held.observer = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && this.draw(Number(entry.target.dataset.page))), {
        root: box,
        rootMargin: "600px 0px",
      });
      held.pages = held.sizes.map((_, index) => {
        const element = document.createElement("div");
        element.className = "pdf__page";
        element.dataset.page = String(index + 1);
        element.setAttribute("role", "region");
        element.setAttribute("aria-label", say("pdf.page", { page: index + 1 }));
        return element;
      });
      box.append(...held.pages);
      this.size();
      held.pages.forEach((element) => held.observer.observe(element));
      let width = box.clientWidth;
      held.resize = new ResizeObserver(() => {
        if (Math.abs(box.clientWidth - width) < 8) return;
        width = box.clientWidth;
        this.resized();
      });
      held.resize.observe(box);
      box.addEventListener("scroll", () => this.watchPage(), { passive: true });
      this.go(first);
    },

    scaleOf(index) {
      return (Math.max(120, this.$refs.pages.clientWidth - 24) * this.zoom) / held.sizes[index].width;
    },

    size() {
      held.pages.forEach((element, index) => {
        const scale = this.scaleOf(index);
        element.style.width = `${Math.floor(held.sizes[index].width * scale)}px`;
        element.style.height = `${Math.floor(held.sizes[index].height * scale)}px`;
      });
    },

    resized() {
      const keep = this.page;
      held.drawn.splice(0).forEach((number) => held.pages[number - 1].replaceChildren());
      this.size();
      this.go(keep);
      held.pages.forEach((element) => {
        held.observer.unobserve(element);
        held.observer.observe(element);
      });
    },

    watchPage() {
      const top = this.$refs.pages.scrollTop + 80;
      let at = 0;
      while (at + 1 < held.pages.length && held.pages[at + 1].offsetTop <= top) at += 1;
      this.page = at + 1;
    },

    async draw(number) {
      const element = held.pages[number - 1];
      if (!element || held.drawn.includes(number)) return;
      held.drawn.push(number);
      const page = await held.file.getPage(number);
      const natural = page.getViewport({ scale: 1 });
      const known = held.sizes[number - 1];
      if (Math.abs(natural.width - known.width) > 1 || Math.abs(natural.height - known.height) > 1) {
        held.sizes[number - 1] = { width: natural.width, height: natural.height };
        this.size();
      }
      const scale = this.scaleOf(number - 1);
      const ratio = Math.min(2, window.devicePixelRatio || 1);
      const viewport = page.getViewport({ scale: scale * ratio });
      const canvas = document.createElement("canvas");
      canvas.width = Math.floor(viewport.width);
      canvas.height = Math.floor(viewport.height);
      await page.render({ canvas, viewport }).promise;
      const text = document.createElement("div");
      text.className = "pdf__text";
      element.replaceChildren(canvas, text);
      element.style.setProperty("--total-scale-factor", String(scale));
      const layer = new held.pdfjs.TextLayer({ textContentSource: page.streamTextContent(), container: text, viewport: page.getViewport({ scale }) });
      await layer.render();
      this.mark(number);
      this.release(number);
    },

    /** Canvases are large: only those near the view stay. */
    release(latest) {
      while (held.drawn.length > KEEP_PAGES) {
        const far = held.drawn.reduce((a, b) => (Math.abs(b - latest) > Math.abs(a - latest) ? b : a));
        held.drawn.splice(held.drawn.indexOf(far), 1);
        held.pages[far - 1].replaceChildren();
        held.observer.unobserve(held.pages[far - 1]);
        held.observer.observe(held.pages[far - 1]);
      }
    },

    mark(number) {
      const element = held.pages[number - 1];
      element.querySelectorAll(".pdf__hit").forEach((hit) => hit.remove());
      for (const hit of held.hits.filter((each) => each.page === number)) {
        const box = document.createElement("div");
        box.className = "pdf__hit";
        Object.assign(box.style, { left: `${hit.x * 100}%`, top: `${hit.y * 100}%`, width: `${hit.w * 100}%`, height: `${hit.h * 100}%` });
        element.append(box);
      }
    },

    go(number, highlights) {
      const page = Math.min(this.total, Math.max(1, Math.round(Number(number)) || 1));
      if (highlights) {
        held.hits = highlights;
        held.drawn.forEach((each) => this.mark(each));
      }
      const element = held.pages[page - 1];
      if (!element) return;
      const hit = held.hits.find((each) => each.page === page);
      const inside = hit ? Math.max(0, hit.y * element.offsetHeight - 80) : -12;
      this.$refs.pages.scrollTop = element.offsetTop + inside;
      this.page = page;
    },

    goTyped(event) {
      this.go(event.target.value);
      event.target.value = String(this.page);
    },
    previous() {
      this.go(this.page - 1);
    },
    next() {
      this.go(this.page + 1);
    },
    zoomBy(step) {
      this.zoom = Math.min(3, Math.max(0.5, Math.round((this.zoom + step) * 4) / 4));
      this.resized();
    },
    larger() {
      this.zoomBy(0.25);
    },
    smaller() {
      this.zoomBy(-0.25);
    },
  };
};
