// <div id="x" data-poll="/url" data-poll-interval="2000"> asks for its own next state and is replaced by the answer.
// When the work is over the server leaves data-poll out, and asking stops. Hidden tabs do not ask; failures slow it down.
import { eachAdded } from "./dom.js";
import { goSignIn, htmx } from "./htmx.js";

const LONGEST_MS = 30000;

function watch(element) {
  if (element.dataset.pollOn) return;
  element.dataset.pollOn = "1";
  const base = Math.max(500, Number(element.dataset.pollInterval) || 2000);
  let wait = base;
  let timer = 0;

  const plan = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, wait);
  };

  const ask = async () => {
    if (!element.isConnected || !element.dataset.poll) return;
    // A menu open inside, or focus in a field of it, would be lost by the swap.
    if (document.hidden || element.querySelector(":popover-open, input:focus, textarea:focus")) return plan();
    const answer = await fetch(element.dataset.poll, { headers: { "HX-Request": "true", "HX-Target": element.id }, credentials: "same-origin" }).catch(() => null);
    if (!element.isConnected) return;
    if (answer?.status === 401) return goSignIn();
    if (answer?.status === 404) return;
    if (!answer?.ok) {
      wait = Math.min(LONGEST_MS, wait * 2);
      element.dataset.pollFailed = "";
      return plan();
    }
    wait = base;
    delete element.dataset.pollFailed;
    if (answer.status === 204) return plan();
    const html = await answer.text();
    const trigger = answer.headers.get("HX-Trigger");
    const focusId = element.contains(document.activeElement) ? document.activeElement.id : "";
    htmx.swap(element, html, { swapStyle: element.dataset.pollSwap || "outerHTML" });
    if (focusId) document.getElementById(focusId)?.focus();
    if (trigger) fire(trigger);
    if (element.isConnected) plan();
  };

  const wake = () => {
    if (!element.isConnected) {
      document.removeEventListener("visibilitychange", wake);
      document.removeEventListener("kb:signed-in", wake);
      return removeEventListener("online", wake);
    }
    wait = base;
    if (!document.hidden) ask();
  };
  document.addEventListener("visibilitychange", wake);
  document.addEventListener("kb:signed-in", wake);
  addEventListener("online", wake);
  plan();
}

function fire(header) {
  const events = header.trim().startsWith("{") ? JSON.parse(header) : Object.fromEntries(header.split(",").map((name) => [name.trim(), {}]));
  for (const [name, detail] of Object.entries(events)) document.body.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
}

eachAdded("[data-poll]", watch);
