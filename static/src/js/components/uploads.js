// Upload manager: a queue for the whole page, three files at a time, each by its own request so that progress, cancel and
// retry belong to one file. A drop zone says by data attributes where and how:
//   data-upload-url, data-upload-field ("file"), data-upload-name-field ("fileName": the path inside a dropped folder),
//   data-upload-extra (JSON of further fields), data-upload-accept ("pdf,docx"), data-upload-max-bytes,
//   data-upload-space (space id, sent as X-Tenant-ID), data-upload-folder-from (selector of a field with the folder to put files in),
//   data-upload-confirm (address of the dialog that asks where to and how, before anything is sent),
//   data-upload-states (address that tells what became of stored documents: ?ids=a,b -> {id: {state, text, href}})
// Answers are the contract's JSON. Each stored file dispatches kb:uploaded on the body, the end of a batch kb:uploads-done.
import { csrfToken, on, parseJson, reasonOf } from "../core/dom.js";
import { htmx } from "../core/htmx.js";
import { say, sizeText } from "../core/i18n.js";

const PARALLEL = 3;
const OPEN = new Set(["waiting", "sending"]);
const SHOWN = 200;
const FOLLOW_MS = 2000;
let nextId = 1;
// Files and requests stay outside of what Alpine watches: its proxies do not work on them.
const jobs = new Map();

/** Files of a drop with the paths they have inside dropped folders. Entries must be taken before the event ends. */
export async function filesOf(transfer) {
  const entries = [...(transfer.items ?? [])].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  const found = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

async function walk(entry, prefix, found) {
  if (entry.isFile) {
    const file = await new Promise((resolve) => entry.file(resolve, () => resolve(null)));
    // Files that systems scatter about are nobody's knowledge.
    if (!/^(\.DS_Store|Thumbs\.db|desktop\.ini|\._.*)$/.test(entry.name)) found.push({ file, path: prefix + entry.name });
    return;
  }
  const reader = entry.createReader();
  // readEntries hands out at most 100 at a time and an empty list at the end.
  for (;;) {
    const part = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!part.length) return;
    for (const child of part) await walk(child, `${prefix}${entry.name}/`, found);
  }
}

export const uploads = {
  list: [],
  paused: false,
  signedOut: false,
  me: null,

  /** Alpine wraps stores; changes made by requests must go through the wrapped one to be seen. */
  bind(reactive) {
    uploads.me = reactive;
  },

  get total() {
    return this.list.length;
  },
  get done() {
    return this.list.filter((item) => item.state === "done" && !item.reading).length;
  },
  get stored() {
    return this.list.filter((item) => item.state === "done" || item.state === "duplicate").length;
  },
  get reading() {
    return this.list.filter((item) => item.state === "done" && item.reading).length;
  },
  get skipped() {
    return this.list.filter((item) => item.state === "duplicate" || item.state === "cancelled").length;
  },
  get failed() {
    return this.list.filter((item) => item.state === "failed").length;
  },
  get waiting() {
    return this.list.filter((item) => item.state === "waiting").length;
  },
  get sending() {
    return this.list.filter((item) => item.state === "sending").length;
  },
  get busy() {
    return this.list.some((item) => OPEN.has(item.state));
  },
  get percent() {
    const all = this.list.reduce((sum, item) => sum + item.size, 0) || 1;
    const sent = this.list.reduce((sum, item) => sum + (OPEN.has(item.state) ? item.sent : item.size), 0);
    return Math.round((100 * sent) / all);
  },
  /** The bar in parts, each with its start and width in percent: done, being read, being sent, failed, skipped; the rest waits. */
  get bar() {
    const parts = {};
    let at = 0;
    for (const name of ["done", "reading", "sending", "failed", "skipped"]) {
      const width = (100 * this[name]) / (this.total || 1);
      parts[name] = { x: at, width };
      at += width;
    }
    return parts;
  },

  add(files, target) {
    const me = uploads.me;
    for (const { file, path } of files) {
      // The same file dropped twice while it waits is one file.
      const twin = file && me.list.find((item) => OPEN.has(item.state) && item.path === path && item.size === file.size && item.url === target.url);
      if (twin) continue;
      const item = { id: nextId++, path, name: path.split("/").pop(), size: file?.size ?? 0, sent: 0, state: "waiting", reading: false, note: say("upload.waiting"), link: "", wantsSignIn: false, url: target.url, retryable: true };
      jobs.set(item.id, { file, target, xhr: null });
      const refusal = refuse(file, target);
      if (refusal) Object.assign(item, { state: "failed", note: refusal, retryable: false });
      me.list.push(item);
    }
    uploads.pump();
  },

  pump() {
    const me = uploads.me;
    while (!me.paused && me.sending < PARALLEL) {
      const next = me.list.find((item) => item.state === "waiting");
      if (!next) break;
      send(next);
    }
    if (!me.busy && me.total) document.body.dispatchEvent(new CustomEvent("kb:uploads-done", { bubbles: true, detail: { done: me.stored, failed: me.failed } }));
  },

  retry(item) {
    if (item.state !== "failed" && item.state !== "cancelled") return;
    Object.assign(uploads.me, { paused: false, signedOut: false });
    Object.assign(item, { wantsSignIn: false, state: "waiting", sent: 0, note: say("upload.waiting") });
    uploads.pump();
  },
  retryFailed() {
    for (const item of uploads.me.list) if (item.state === "failed" && item.retryable) uploads.retry(item);
  },
  cancel(item) {
    if (!OPEN.has(item.state)) return;
    Object.assign(item, { state: "cancelled", note: say("upload.cancelled") });
    jobs.get(item.id).xhr?.abort();
    uploads.pump();
  },
  cancelAll() {
    for (const item of [...uploads.me.list].reverse()) uploads.cancel(item);
  },
  clear() {
    if (uploads.me.busy) return;
    Object.assign(uploads.me, { list: [], paused: false, signedOut: false });
    jobs.clear();
  },
};

function refuse(file, target) {
  if (!file) return say("upload.unreadable");
  if (file.size === 0) return say("upload.empty");
  const type = file.name.includes(".") ? file.name.split(".").pop().toLowerCase() : "";
  if (target.accept.length && type && !target.accept.includes(type)) return say("upload.type", { type: type ? `.${type}` : "?", accepted: target.accept.join(" ") });
  if (target.maxBytes && file.size > target.maxBytes) return say("upload.size", { limit: sizeText(target.maxBytes) });
  return "";
}

function send(item) {
  const job = jobs.get(item.id);
  const { file, target } = job;
  const form = new FormData();
  for (const [name, value] of Object.entries(target.extra)) form.append(name, value);
  form.append(target.field, file, file.name);
  if (target.nameField) form.append(target.nameField, target.folder ? `${target.folder}/${item.path}` : item.path);
  const xhr = new XMLHttpRequest();
  job.xhr = xhr;
  Object.assign(item, { state: "sending", sent: 0, note: say("upload.sending", { percent: 0 }) });
  xhr.upload.addEventListener("progress", (event) => {
    if (!event.lengthComputable || item.state !== "sending") return;
    item.sent = Math.round((item.size * event.loaded) / event.total);
    item.note = say("upload.sending", { percent: Math.round((100 * event.loaded) / event.total) });
  });
  xhr.addEventListener("load", () => finish(item, xhr));
  xhr.addEventListener("error", () => fail(item, say("upload.network")));
  xhr.addEventListener("timeout", () => fail(item, say("upload.timeout")));
  xhr.open("POST", target.url);
  xhr.setRequestHeader("X-CSRFToken", csrfToken());
  xhr.setRequestHeader("Accept", "application/json");
  if (target.space) xhr.setRequestHeader("X-Tenant-ID", target.space);
  xhr.send(form);
}

function finish(item, xhr) {
  if (item.state !== "sending") return;
  const body = parseJson(xhr.responseText);
  if (xhr.status === 401) {
    // The rest would fail the same way; it waits for the retry.
    pauseSignedOut();
    fail(item, say("upload.signedOut"));
    item.wantsSignIn = true;
    return;
  }
  if (xhr.status >= 200 && xhr.status < 300 && body?.success !== false) {
    Object.assign(item, { state: "done", sent: item.size, note: body?.message || say("upload.stored"), link: linkOf(item, body) });
    follow(item, body?.data?.id);
    document.body.dispatchEvent(new CustomEvent("kb:uploaded", { bubbles: true, detail: { id: body?.data?.id ?? "", name: item.name } }));
    return uploads.pump();
  }
  if (xhr.status === 409 && String(body?.code ?? "").startsWith("duplicate")) {
    Object.assign(item, { state: "duplicate", sent: item.size, note: say("upload.duplicate"), link: linkOf(item, body) });
    return uploads.pump();
  }
  const fallback = xhr.status === 413 ? "error.large" : xhr.status === 403 ? "error.forbidden" : "error.server";
  fail(item, reasonOf(body) || say(fallback), xhr.status >= 500 || xhr.status === 429);
}

function pauseSignedOut() {
  Object.assign(uploads.me, { paused: true, signedOut: true });
}

/** Leaving for the sign-in page would lose the chosen files: they stay, and the tray says where to sign in. */
document.addEventListener("kb:signed-out", (event) => {
  const me = uploads.me;
  if (asked) return event.preventDefault(); // its files go to the tray in a moment
  if (!me?.list.some((item) => OPEN.has(item.state) || item.wantsSignIn)) return;
  event.preventDefault();
  pauseSignedOut();
});

// Whoever comes back from signing in in another tab finds their uploads going on.
let asking = false;
async function resumeIfSignedIn() {
  const me = uploads.me;
  if (!me?.signedOut || asking || document.hidden) return;
  const address = [...jobs.values()].map((job) => job.target.states).find(Boolean);
  if (!address) return;
  asking = true;
  const answer = await fetch(`${address}?ids=`, { headers: { Accept: "application/json" }, redirect: "manual" }).catch(() => null);
  asking = false;
  if (answer?.status !== 200) return;
  Object.assign(me, { paused: false, signedOut: false });
  for (const item of me.list) {
    if (!item.wantsSignIn) continue;
    item.wantsSignIn = false;
    if (item.state === "failed") Object.assign(item, { state: "waiting", sent: 0, note: say("upload.waiting") });
  }
  document.dispatchEvent(new CustomEvent("kb:signed-in"));
  uploads.pump();
}
addEventListener("focus", resumeIfSignedIn);
addEventListener("pageshow", resumeIfSignedIn);
document.addEventListener("visibilitychange", resumeIfSignedIn);

// Stored is not yet read: the tray goes on telling what becomes of a document until it can be found or has failed.
let following = 0;
const documentOf = (item) => jobs.get(item.id)?.documentId ?? "";

function follow(item, id) {
  const job = jobs.get(item.id);
  if (!id || !job?.target.states) return;
  job.documentId = id;
  item.reading = true;
  following ||= setTimeout(askStates, FOLLOW_MS);
}

async function askStates() {
  following = 0;
  const open = uploads.me.list.filter(documentOf);
  if (!open.length) return;
  for (const address of document.hidden ? [] : new Set(open.map((item) => jobs.get(item.id).target.states))) {
    const items = open.filter((item) => jobs.get(item.id)?.target.states === address).slice(0, 100);
    const answer = await fetch(`${address}?ids=${items.map(documentOf).join(",")}`, { headers: { Accept: "application/json" }, redirect: "manual" }).catch(() => null);
    if (!answer?.ok) continue;
    const states = await answer.json();
    for (const item of items) settle(item, states[documentOf(item)]);
  }
  following ||= setTimeout(askStates, FOLLOW_MS);
}

function settle(item, now) {
  const job = jobs.get(item.id);
  if (!job) return;
  // A document that is gone (deleted meanwhile) has no more news.
  if (!now || now.state) {
    job.documentId = "";
    item.reading = false;
  }
  if (!now) return;
  item.note = now.text;
  item.link ||= now.href;
  if (now.state === "failed") Object.assign(item, { state: "failed", retryable: false });
}

/** Where the stored document is read, from data-upload-link with {id} in it. */
function linkOf(item, body) {
  const id = body?.data?.id;
  const { link } = jobs.get(item.id).target;
  return id && link ? link.replace("{id}", encodeURIComponent(id)) : "";
}

function fail(item, note, retryable = true) {
  if (item.state !== "sending") return;
  Object.assign(item, { state: "failed", note, retryable });
  uploads.pump();
}

addEventListener("beforeunload", (event) => {
  if (uploads.me?.busy || uploads.me?.signedOut) event.preventDefault();
});

function targetOf(element) {
  const data = element.dataset;
  return {
    url: data.uploadUrl,
    field: data.uploadField || "file",
    nameField: data.uploadNameField ?? "fileName",
    extra: parseJson(data.uploadExtra ?? "") ?? {},
    accept: (data.uploadAccept ?? "").toLowerCase().split(/[\s,]+/).map((type) => type.replace(/^\./, "")).filter(Boolean),
    maxBytes: Number(data.uploadMaxBytes) || 0,
    link: data.uploadLink ?? "",
    space: data.uploadSpace ?? "",
    folder: (data.uploadFolderFrom && document.querySelector(data.uploadFolderFrom)?.value) || "",
    states: data.uploadStates ?? "",
    confirm: data.uploadConfirm ?? "",
  };
}

// What is asked before the files are sent. They wait here while the dialog is open; closing it sends nothing.
let asked = null;

async function ask(files, target) {
  if (!files.length) return;
  if (!target.confirm || !document.getElementById("dialog-slot")) return uploads.add(files, target);
  asked = { files, target };
  // Asking needs a session and a line; without them the files go to the tray at once, which keeps them and says what is wrong.
  const here = target.states && (await fetch(`${target.states}?ids=`, { headers: { Accept: "application/json" }, redirect: "manual" }).catch(() => null));
  if (target.states && here?.status !== 200) return uploads.add(files, target);
  const described = files.map(({ file, path }) => ({ path, size: file?.size ?? 0 }));
  const chosen = document.querySelector("[data-selection]")?.kbSelected?.();
  const values = { files: JSON.stringify(described), folder: target.folder, ids: chosen && !chosen.everything ? chosen.ids : [] };
  await htmx.ajax("POST", target.confirm, { target: "#dialog-slot", values }).catch(() => null);
  // Nobody could be asked (the line is dead, the session over): the tray says so for each file and tries again.
  if (asked && !document.getElementById("upload-confirm")) {
    asked = null;
    uploads.add(files, target);
  }
}

const partOf = (text) => parseJson(text ?? "") ?? {};

function wishesIn(form) {
  const parts = [...form.querySelectorAll("[data-wish]")].map((field) => partOf(field.value));
  for (const box of form.querySelectorAll("[data-wish-on]")) parts.push(partOf(box.checked ? box.dataset.wishOn : box.dataset.wishOff));
  return Object.assign({}, ...parts);
}

on(
  "submit",
  "#upload-confirm",
  (event, form) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!asked) return;
    const { files, target } = asked;
    asked = null;
    const values = new FormData(form);
    const extra = { ...target.extra };
    const tags = values.getAll("tag");
    if (tags.length) extra.tag_ids = tags.join(",");
    if (values.get("on_same_name")) extra.on_same_name = values.get("on_same_name");
    const wishes = wishesIn(form);
    if (Object.keys(wishes).length) extra.process_config = JSON.stringify(wishes);
    uploads.add(files, { ...target, extra, folder: (values.get("folder") ?? "").trim().replace(/^\/+|\/+$/g, "") });
    form.closest("dialog").close();
  },
  true,
);
document.addEventListener(
  "close",
  (event) => {
    if (event.target.querySelector?.("#upload-confirm")) asked = null;
  },
  true,
);

/** The drop zone; with data-upload-page files may be dropped anywhere on the page. */
export const fileDrop = () => ({
  over: false,

  init() {
    if (!("uploadPage" in this.$root.dataset)) return;
    let depth = 0;
    const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const listeners = {
      dragenter: (event) => {
        if (!carriesFiles(event)) return;
        depth += 1;
        this.over = true;
      },
      dragleave: () => {
        depth = Math.max(0, depth - 1);
        if (!depth) this.over = false;
      },
      dragover: (event) => carriesFiles(event) && event.preventDefault(),
      drop: (event) => {
        depth = 0;
        if (carriesFiles(event)) this.dropped(event);
      },
    };
    for (const [type, run] of Object.entries(listeners)) document.addEventListener(type, run);
    this.stop = () => Object.entries(listeners).forEach(([type, run]) => document.removeEventListener(type, run));
  },
  destroy() {
    this.stop?.();
  },

  pick() {
    this.$refs.files.click();
  },
  pickFolder() {
    this.$refs.folder.click();
  },
  picked(event) {
    const files = [...event.target.files].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
    event.target.value = "";
    ask(files, targetOf(this.$root));
  },
  enter() {
    this.over = true;
  },
  leave() {
    this.over = false;
  },
  async dropped(event) {
    event.preventDefault();
    event.stopPropagation();
    this.over = false;
    const target = targetOf(this.$root);
    ask(await filesOf(event.dataTransfer), target);
  },
});

const ICONS = { waiting: "clock", sending: "upload", done: "approve", duplicate: "info", failed: "error", cancelled: "cancel" };

/** The tray: totals and one line per file; failed ones first, then what moves. */
export const uploadTray = () => ({
  folded: false,

  get shown() {
    const rank = { failed: 0, sending: 1, waiting: 2, duplicate: 3, done: 4, cancelled: 5 };
    return [...this.$store.uploads.list].sort((a, b) => rank[a.state] - rank[b.state] || a.id - b.id).slice(0, SHOWN);
  },
  get hiddenCount() {
    return Math.max(0, this.$store.uploads.total - SHOWN);
  },
  get signInUrl() {
    return document.body.dataset.signInUrl || "/";
  },
  get any() {
    return this.$store.uploads.total > 0;
  },
  get title() {
    const { stored, total, busy, failed } = this.$store.uploads;
    return say(busy ? "upload.active" : "upload.finished", { done: busy ? Math.min(total, stored + failed + 1) : stored, total });
  },
  iconOf(item) {
    const sprite = document.querySelector('meta[name="icon-sprite"]')?.content ?? "";
    return `${sprite}#${ICONS[item.state]}`;
  },
  fold() {
    this.folded = !this.folded;
  },
  mayRetry(item) {
    return (item.state === "failed" && item.retryable) || item.state === "cancelled";
  },
  mayCancel(item) {
    return OPEN.has(item.state);
  },
  retry(item) {
    uploads.retry(item);
  },
  cancel(item) {
    uploads.cancel(item);
  },
  retryFailed() {
    uploads.retryFailed();
  },
  cancelAll() {
    uploads.cancelAll();
  },
  clear() {
    uploads.clear();
  },
});
