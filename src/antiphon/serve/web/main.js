// The page: what is clicked and typed becomes a conversation, and what happens in it is shown.
import { Conversation, STATES } from "./conversation.js";
import { byId } from "./dom.js";
import { LatencyView } from "./latency_view.js";
import { load } from "./settings.js";
import { SettingsView } from "./settings_view.js";
import { TranscriptView } from "./transcript_view.js";

const NAMES = { ...STATES, idle: "Not connected", failed: "Not connected" };
const LOUD = 0.25; // that a meter shows as full
const LEVELS_MS = 50; // between two looks of the meters: the cores have better to do, and so has whoever talks

const server = new URL("./", location.href);
const choices = load();
let key = ""; // kept here alone: not stored, not in the address
let isKeyNeeded = false;

const conversation = new Conversation({
  server,
  secret: async () => key,
  model: new URLSearchParams(location.search).get("model") ?? "",
  ...choices,
});
const latency = new LatencyView(conversation.turns);
const transcript = new TranscriptView(byId("transcript"), byId("scroll"));
const settings = new SettingsView(choices, (chosen) => conversation.wish(chosen));
const talk = byId("talk", HTMLButtonElement);
const keyForm = byId("key-form", HTMLFormElement);
const keyField = byId("key", HTMLInputElement);

conversation.addEventListener("change", (event) => {
  switch (/** @type {CustomEvent<string>} */ (event).detail) {
    case "state":
      showState();
      break;
    case "opinion":
      showChip();
      break;
    case "transcript":
      transcript.show(conversation.transcript.entries);
      byId("welcome").hidden = conversation.transcript.entries.length > 0 || conversation.isOn;
      break;
    case "turns":
      latency.show();
      break;
    case "level":
      showLevels();
      break;
    case "notice":
      showNotice();
      break;
  }
});

function showState() {
  const { state, problem, isOn } = conversation;
  showChip();
  talk.setAttribute("aria-pressed", String(isOn));
  byId("talk-label").textContent = isOn ? "End" : "Talk";
  talk.setAttribute("aria-label", isOn ? "End the conversation" : "Talk: start a conversation");
  byId("announce").textContent = NAMES[state];
  byId("problem").hidden = problem === null;
  byId("problem-title").textContent = problem?.title ?? "";
  byId("problem-remedy").textContent = problem?.remedy ?? "";
  byId("problem-retry").hidden = !problem?.retry;
  if (problem?.wantsKey) askForKey();
  showNotice();
  byId("welcome").hidden = conversation.transcript.entries.length > 0 || isOn;
  talk.classList.toggle("held", conversation.isHeld);
}

function showNotice() {
  byId("notice").textContent = conversation.problem ? "" : conversation.notice;
}

function showChip() {
  const { state, opinion } = conversation;
  const isJudging = opinion !== null && (state === "hearing" || state === "thinking");
  const sure = isJudging ? ` · ${Math.round(opinion.probability * 100)} % sure you are done` : "";
  byId("state").textContent = NAMES[state] + sure + (state === "listening" && conversation.way ? ` · ${conversation.way}` : "");
  byId("chip").dataset.state = state;
}

let isDrawing = false;
function showLevels() {
  if (isDrawing) return;
  isDrawing = true;
  setTimeout(() => requestAnimationFrame(drawLevels), LEVELS_MS);
}

function drawLevels() {
  isDrawing = false;
  const shown = (/** @type {number} */ level) => Math.min(1, Math.sqrt(level / LOUD)).toFixed(2);
  byId("level-in").style.setProperty("--level", shown(conversation.levels.in));
  byId("level-out").style.setProperty("--level", shown(conversation.levels.out));
  talk.style.setProperty("--level", shown(conversation.levels.in));
}

function askForKey() {
  keyForm.hidden = false;
  keyField.focus();
}

function toggle() {
  if (conversation.isOn) {
    conversation.stop();
  } else if (isKeyNeeded && !key) {
    askForKey();
  } else {
    void conversation.start();
  }
}

talk.addEventListener("click", toggle);
byId("problem-retry").addEventListener("click", () => void conversation.start());
keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  key = keyField.value.trim();
  keyField.value = "";
  keyForm.hidden = key !== "";
  void about();
  if (key && !conversation.isOn) void conversation.start();
});

/** @param {KeyboardEvent} event */
function isTyping(event) {
  const { target } = event;
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

document.addEventListener("keydown", (event) => {
  if (settings.dialog.open || isTyping(event) || !conversation.isOn) return;
  if (event.code === "Space") {
    event.preventDefault(); // neither scroll nor press the button that has the focus: Enter still does
    if (!event.repeat) conversation.press();
  } else if (event.code === "Escape") {
    conversation.interrupt();
  }
});
document.addEventListener("keyup", (event) => {
  if (event.code !== "Space" || (!conversation.isHeld && (isTyping(event) || !conversation.isOn))) return;
  event.preventDefault();
  conversation.release();
});
window.addEventListener("blur", () => conversation.release()); // the key goes up unseen
window.addEventListener("pagehide", () => conversation.stop());

async function about() {
  /** @type {Record<string, string>} */
  const headers = key ? { authorization: `Bearer ${key}` } : {};
  try {
    const told = await (await fetch(new URL("about.json", server), { headers })).json();
    isKeyNeeded = told.key_needed;
    settings.voices = told.voices ?? [];
    byId("agent").textContent = (told.models ?? []).join(" · ");
  } catch {
    // the server is away; the click says so
  }
}

void about();
latency.show();
Object.assign(window, { antiphon: conversation }); // for the console, and for whoever tests the page
