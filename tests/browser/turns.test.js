// A turn's silence, laid out.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_TURNS, Turns, certainty, latencyOf, parts, rows } from "../../src/antiphon/serve/web/turns.js";

const STAGES = {
  "antiphon.pause.noticed": 100,
  "antiphon.transcribed": 300,
  "antiphon.turn.confirmed": 420,
  "antiphon.reply.first_token": 380,
  "antiphon.reply.chunk_ready": 500,
  "antiphon.reply.voiced": 560,
  "antiphon.reply.first_sound": 562,
};

const timeline = (turn = 1, fields = {}) => ({
  type: "antiphon.turn.timeline",
  event_id: `event_${turn}`,
  turn,
  stages: STAGES,
  spans: [
    { stage: "antiphon.vad", start_ms: 0, end_ms: 100 },
    { stage: "speech_to_text", start_ms: -150, end_ms: -20 },
    { stage: "speech_to_text", start_ms: 101, end_ms: 300 },
    { stage: "chat", start_ms: 310, end_ms: 900 },
  ],
  item_id: `item_${turn}`,
  response_id: `resp_${turn}`,
  response_item_id: `reply_${turn}`,
  ...fields,
});

const judged = (turn, silence, probability, evidence) => ({
  type: "antiphon.turn.end_judged",
  turn,
  silence_ms: silence,
  probability,
  wait_ms: 400,
  pause_ms: 350,
  cut_in_risk: 0.04,
  evidence,
});

test("the parts add up to the whole, the network among them", () => {
  const turns = new Turns();
  const turn = turns.take(timeline());
  turns.sounded("reply_1", 590);
  const found = parts(turn);
  assert.equal(found[0].start, 0);
  assert.equal(found.at(-1).end, 590);
  found.slice(1).forEach((part, at) => assert.equal(part.start, found[at].end));
  assert.deepEqual(found.map((part) => part.name), ["notice", "hear", "judge", "think", "speak", "play", "net"]);
});

test("a reply that is written once the words were heard again waited for the hearing", () => {
  const spans = [
    { stage: "speech_to_text", start_ms: 101, end_ms: 300 },
    { stage: "speech_to_text", start_ms: 302, end_ms: 470 },
    { stage: "chat", start_ms: 475, end_ms: 900 },
  ];
  const turn = new Turns().take(timeline(1, { stages: { ...STAGES, "antiphon.turn.confirmed": 561 }, spans }));
  assert.deepEqual(
    parts(turn).map(({ name, start, end }) => [name, start, end]),
    [["notice", 0, 100], ["hear", 100, 475], ["think", 475, 500], ["speak", 500, 560], ["judge", 560, 561], ["play", 561, 562]],
  );
});

test("a stage that ran ahead takes no time of its own", () => {
  const turn = new Turns().take(timeline(1, { stages: { ...STAGES, "antiphon.reply.voiced": 250, "antiphon.reply.chunk_ready": 200 } }));
  const found = parts(turn);
  assert.equal(found.reduce((sum, part) => sum + part.end - part.start, 0), 562);
  assert.ok(found.every((part) => part.end > part.start));
});

test("a page that heard it sooner than the server meant it to does not make parts negative", () => {
  const turns = new Turns();
  const turn = turns.take(timeline());
  turns.sounded("reply_1", 540);
  assert.ok(parts(turn).every((part) => part.end > part.start && part.end <= 540));
});

test("rows hold what engines did within the silence and nothing else", () => {
  const turns = new Turns();
  const turn = turns.take(timeline());
  turns.sounded("reply_1", 600);
  const found = rows(turn);
  assert.deepEqual(found.map((row) => row.label), ["Voice detection", "Speech recognition", "Language model", "Network, playback"]);
  assert.deepEqual(found[1].bars, [{ start: 101, end: 300 }]);
  assert.deepEqual(found[2].bars, [{ start: 310, end: 600 }]);
  assert.equal(found[3].total, 38);
});

test("opinions belong to their turn, those of an earlier pause do not", () => {
  const turns = new Turns();
  turns.take(judged(1, 250, 0.2, ["words", "ears"]));
  turns.take(judged(1, 380, 0.1, ["words", "ears", "mass"]));
  turns.take(judged(1, 260, 0.7, ["words", "ears"]));
  turns.take(judged(1, 330, 0.9, ["words", "ears", "mass"]));
  const turn = turns.take(timeline());
  assert.deepEqual(turn.opinions.map((one) => one.probability), [0.7, 0.9]);
  assert.deepEqual(turns.take(timeline(2)).opinions, []);
});

test("silence makes it surer, and an opinion is a step", () => {
  const turns = new Turns();
  turns.take(judged(1, 200, 0.5, ["words"]));
  turns.take(judged(1, 300, 0.95, ["words", "mass"]));
  const points = certainty(turns.take(timeline()).opinions, 420);
  assert.ok(points.every((point, at) => at === 0 || point.at >= points[at - 1].at));
  const before = points.filter((point) => point.at < 300);
  assert.ok(before.every((point, at) => at === 0 || point.sure >= before[at - 1].sure));
  assert.ok(points.find((point) => point.at === 300 && point.sure > 0.97));
  assert.equal(points.at(-1).at, 420);
});

test("what the page measured goes before what the server says; nothing impossible is shown", () => {
  const turns = new Turns();
  const turn = turns.take(timeline());
  assert.equal(latencyOf(turn), 562);
  turns.sounded("reply_1", 601.5);
  assert.equal(latencyOf(turn), 601.5);
  turn.page = -3;
  assert.equal(latencyOf(turn), null);
  assert.deepEqual(turns.latencies(), []);
});

test("a turn without a reply has no latency, and its outcome comes with the response", () => {
  const turns = new Turns();
  const { "antiphon.reply.first_sound": _, ...stages } = STAGES;
  assert.equal(latencyOf(turns.take(timeline(1, { stages, response_item_id: null }))), null);
  const turn = turns.take(timeline(2));
  turns.take({ type: "response.done", response: { status: "cancelled", output: [{ id: "reply_2" }] } });
  assert.equal(turn.outcome, "cancelled");
});

test("there is a bound", () => {
  const turns = new Turns();
  for (let at = 1; at <= MOST_TURNS + 5; at++) turns.take(timeline(at));
  assert.equal(turns.all.length, MOST_TURNS);
  assert.equal(turns.all.at(-1).number, MOST_TURNS + 5);
});
