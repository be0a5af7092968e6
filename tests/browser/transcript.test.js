// What both sides said, and what was never heard.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_ENTRIES, Transcript } from "../../src/antiphon/serve/web/transcript.js";

const spoken = (transcript, ...events) => events.forEach((event) => transcript.take(event));
const started = (id) => ({ type: "input_audio_buffer.speech_started", item_id: id });
const heard = (id, transcript) => ({ type: "conversation.item.input_audio_transcription.completed", item_id: id, transcript });
const said = (id, delta) => ({ type: "response.output_audio_transcript.delta", item_id: id, delta });
const done = (id, status, transcript) => ({
  type: "response.done",
  response: { id: "resp", status, output: [{ id, content: [{ type: "output_audio", transcript }] }] },
});

test("both sides in order, the last words over the first guesses", () => {
  const transcript = new Transcript();
  spoken(
    transcript,
    started("u1"),
    { type: "conversation.item.input_audio_transcription.delta", item_id: "u1", delta: "A latter" },
    heard("u1", "A latte."),
    said("a1", "Coming "),
    said("a1", "up."),
    done("a1", "completed", "Coming up."),
  );
  assert.deepEqual(transcript.entries.map((entry) => [entry.kind, entry.text, entry.state]), [
    ["user", "A latte.", "done"],
    ["assistant", "Coming up.", "done"],
  ]);
});

test("after an interruption the text is what was heard, and the rest stands apart", () => {
  const transcript = new Transcript();
  spoken(transcript, said("a1", "We have tea"), done("a1", "cancelled", "We have tea"), {
    type: "antiphon.response.unheard",
    response_id: "resp",
    item_id: "a1",
    text: "and cake.",
  });
  const [entry] = transcript.entries;
  assert.deepEqual([entry.text, entry.unheard, entry.state], ["We have tea", "and cake.", "interrupted"]);
});

test("what the client was told beyond what was heard is cut off the text", () => {
  const transcript = new Transcript();
  spoken(transcript, said("a1", "We have tea and cake"), done("a1", "cancelled", "We have"), {
    type: "antiphon.response.unheard",
    response_id: "resp",
    item_id: "a1",
    text: "today.",
  });
  const [entry] = transcript.entries;
  assert.deepEqual([entry.text, entry.unheard], ["We have", " tea and cake today."]);
});

test("an answer that came too early is kept as one that nobody heard, and is not remembered", () => {
  const transcript = new Transcript();
  spoken(transcript, said("a1", ""), done("a1", "cancelled", ""), { type: "conversation.item.deleted", item_id: "a1" }, {
    type: "antiphon.response.unheard",
    response_id: "resp",
    item_id: "a1",
    text: "Sure.",
  });
  const [entry] = transcript.entries;
  assert.deepEqual([entry.text, entry.unheard, entry.state], ["", "Sure.", "retracted"]);
  assert.deepEqual(transcript.spoken(), []);
});

test("a cough leaves no trace", () => {
  const transcript = new Transcript();
  spoken(transcript, started("u1"), heard("u1", ""));
  assert.deepEqual(transcript.entries, []);
});

test("a tool's call and what came of it are one entry", () => {
  const transcript = new Transcript();
  const call = { type: "function_call", id: "c1", call_id: "call", name: "order", arguments: '{"drink": "latte"}' };
  spoken(transcript, { type: "conversation.item.added", item: call }, { type: "conversation.item.added", item: call });
  assert.equal(transcript.entries[0].state, "running");
  spoken(transcript, { type: "conversation.item.added", item: { type: "function_call_output", id: "o1", call_id: "call", output: "One latte." } });
  assert.deepEqual(transcript.entries.map((entry) => [entry.name, entry.output, entry.state]), [["order", "One latte.", "done"]]);
});

test("what was open when the connection went is closed, and empty entries go", () => {
  const transcript = new Transcript();
  spoken(transcript, started("u1"), heard("u1", "Hello."), said("a1", "Hello to"), started("u2"));
  transcript.cut();
  assert.deepEqual(transcript.entries.map((entry) => [entry.id, entry.state]), [["u1", "done"], ["a1", "interrupted"]]);
  assert.deepEqual(transcript.spoken(), [{ role: "user", text: "Hello." }, { role: "assistant", text: "Hello to" }]);
});

test("there is a bound", () => {
  const transcript = new Transcript();
  for (let at = 0; at < MOST_ENTRIES + 7; at++) spoken(transcript, heard(`u${at}`, "Yes."));
  assert.equal(transcript.entries.length, MOST_ENTRIES);
});
