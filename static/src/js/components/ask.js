// A conversation: the composer (Enter sends, it grows with its text), answers drawn as they are written, what to ask about next.
import { announce, eachAdded, on } from "../core/dom.js";
import { htmx } from "../core/htmx.js";
import { say } from "../core/i18n.js";

const NEAR_PX = 120;
const RETRIES = 5;

const page = () => document.scrollingElement;
const nearEnd = () => page().scrollHeight - page().scrollTop - innerHeight < NEAR_PX;
const toEnd = () => page().scrollTo({ top: page().scrollHeight });

/** Said to who listens, and the list of conversations takes over a new title. */
function ended() {
  announce(say("ask.done"));
  document.body.dispatchEvent(new CustomEvent("kb:changed", { bubbles: true }));
}

/** An answer being written: the server sends its HTML as it grows, then the conversation is read as it is stored. */
function follow(article) {
  if (article.dataset.following) return;
  article.dataset.following = "1";
  const text = article.querySelector("[data-answer]");
  const stage = article.querySelector("[data-stage]");
  let failures = 0;

  const finish = () => {
    source.close();
    if (article.isConnected) htmx.ajax("GET", article.dataset.streamDone, { target: "#talk", swap: "outerHTML" }).then(ended);
  };
  const place = (element, html) => {
    const follows = nearEnd();
    htmx.swap(element, html, { swapStyle: "innerHTML", swapDelay: 0, settleDelay: 0 });
    if (follows) toEnd();
  };

  const source = new EventSource(article.dataset.stream);
  source.addEventListener("stage", (event) => {
    failures = 0;
    place(stage, JSON.parse(event.data).html);
  });
  source.addEventListener("answer", (event) => {
    failures = 0;
    place(text, JSON.parse(event.data).html);
  });
  source.addEventListener("end", finish);
  // The browser connects again by itself, and the stream begins anew: nothing is lost. In vain several times: read what is stored.
  source.onerror = () => {
    failures += 1;
    if (!article.isConnected) source.close();
    else if (source.readyState === EventSource.CLOSED || failures > RETRIES) {
      source.close();
      setTimeout(finish, 2000);
    }
  };
}

eachAdded("[data-stream]", follow);

function grow(area) {
  area.rows = 1;
  const line = parseFloat(getComputedStyle(area).lineHeight) || 22;
  area.rows = Math.min(10, Math.max(1, Math.round((area.scrollHeight - 16) / line)));
}

on("input", "[data-autosize]", (_event, area) => grow(area));
eachAdded("[data-autosize]", grow);

on("keydown", "[data-ask-form] textarea", (event, area) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  if (area.value.trim()) area.form.requestSubmit();
});

// The chip says at once which bases are chosen.
on("change", "#ask-bases input", () => {
  const chosen = [...document.querySelectorAll("#ask-bases input:checked")].map((box) => box.dataset.baseName);
  const chip = document.querySelector('.composer [popovertarget="ask-bases"]');
  const label = chip?.querySelector(".chip__text");
  if (!label) return;
  label.textContent = chosen.length === 0 ? say("ask.all") : chosen.length === 1 ? chosen[0] : `${chosen[0]} +${chosen.length - 1}`;
  chip.closest(".chip").classList.toggle("chip--on", chosen.length > 0);
});

on("click", "[data-ask-quote]", (_event, button) => {
  const area = document.getElementById("ask-text");
  if (!area) return;
  if (!area.value.includes(button.dataset.askQuote)) area.value = button.dataset.askQuote + area.value;
  area.dispatchEvent(new Event("input", { bubbles: true }));
  area.focus();
  area.setSelectionRange(area.value.length, area.value.length);
});

// A question that is offered is asked at once; without a script its link fills it in.
on("click", "a[data-ask-say]", (event, link) => {
  const area = document.getElementById("ask-text");
  if (!area || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const draft = area.value.trim();
  area.value = draft ? `${draft}\n${link.dataset.askSay}` : link.dataset.askSay;
  area.dispatchEvent(new Event("input", { bubbles: true }));
  if (draft) area.focus();
  else area.form.requestSubmit();
});

// A conversation opens at its end; what was just sent is in sight.
eachAdded("#talk", (talk) => {
  if (talk.querySelector("[data-stream]") || (!location.hash && !talk.dataset.seen)) toEnd();
  talk.dataset.seen = "1";
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id === "composer") document.getElementById("ask-text")?.focus();
});
