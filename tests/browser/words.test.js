// What is said when something is wrong, and what is kept of somebody's choices.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isPassing, microphoneProblem, serverProblem } from "../../src/antiphon/serve/web/problems.js";
import { read } from "../../src/antiphon/serve/web/settings.js";

const HERE = { secure: true, origin: "https://voice.example" };

test("every problem has a title and a remedy", () => {
  for (const name of ["NotAllowedError", "NotFoundError", "NotReadableError", "SomethingNewError", ""]) {
    const problem = microphoneProblem(name, HERE);
    assert.ok(problem.title && problem.remedy, name);
  }
  for (const code of ["session_limit_reached", "invalid_api_key", "session_expired", "something_new", ""]) {
    const problem = serverProblem(code, "");
    assert.ok(problem.title && problem.remedy, code);
  }
});

test("an insecure page is told apart from a blocked one, and names itself", () => {
  const problem = microphoneProblem("NotAllowedError", { secure: false, origin: "http://10.0.0.7:8000" });
  assert.match(problem.remedy, /http:\/\/10\.0\.0\.7:8000/);
  assert.equal(problem.retry, false);
});

test("a wrong key asks for another, and only what may pass is tried again", () => {
  assert.equal(serverProblem("invalid_api_key", "").wantsKey, true);
  assert.deepEqual(["", "server_shutting_down", "session_limit_reached", "invalid_api_key"].map(isPassing), [true, true, false, false]);
});

test("whatever is kept in a browser becomes choices", () => {
  for (const text of [null, "", "null", "[]", "{", '{"eagerness": 5, "transport": "pigeon"}']) {
    assert.deepEqual(read(text), { voice: "", instructions: "", eagerness: "auto", device: "", transport: "auto" });
  }
  assert.equal(read('{"eagerness": "low", "transport": "websocket"}').transport, "websocket");
});
