// The dialog in which somebody chooses.
import { byId, html } from "./dom.js";
import { save } from "./settings.js";
import { microphones } from "./sound.js";

export class SettingsView {
  /** @param {import("./settings.js").Choices} choices @param {(choices: import("./settings.js").Choices) => void} chosen */
  constructor(choices, chosen) {
    this.choices = choices;
    this.chosen = chosen;
    this.dialog = byId("settings", HTMLDialogElement);
    this.voice = byId("voice", HTMLSelectElement);
    this.instructions = byId("instructions", HTMLTextAreaElement);
    this.eagerness = byId("eagerness", HTMLSelectElement);
    this.device = byId("device", HTMLSelectElement);
    this.transport = byId("transport", HTMLSelectElement);
    /** @type {readonly string[]} */
    this.voices = [];
    byId("settings-open").addEventListener("click", () => void this.open());
    this.dialog.addEventListener("close", () => this.close());
  }

  async open() {
    const { choices } = this;
    fill(this.voice, [["", "The agent’s own"], ...this.voices.map((name) => /** @type {[string, string]} */ ([name, name]))], choices.voice);
    this.instructions.value = choices.instructions;
    this.eagerness.value = choices.eagerness;
    this.transport.value = choices.transport;
    const found = await microphones().catch(() => []);
    fill(this.device, [["", "The usual one"], ...found.map(({ id, name }) => /** @type {[string, string]} */ ([id, name]))], choices.device);
    if (!this.dialog.open) this.dialog.showModal();
  }

  close() {
    const { choices } = this;
    choices.voice = this.voice.value;
    choices.instructions = this.instructions.value;
    choices.eagerness = this.eagerness.value;
    choices.device = this.device.value;
    choices.transport = /** @type {typeof choices.transport} */ (this.transport.value);
    save(choices);
    this.chosen(choices);
  }
}

/** @param {HTMLSelectElement} select @param {[string, string][]} options @param {string} value */
function fill(select, options, value) {
  select.replaceChildren(...options.map(([key, name]) => html("option", { value: key }, name)));
  select.value = options.some(([key]) => key === value) ? value : "";
}
