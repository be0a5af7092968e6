"""Readers of model files, against the libraries that the files belong to."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the environment that scripts/gpu makes")

from antiphon.core.errors import CallerError  # noqa: E402
from antiphon.gpu.weights.ctranslate2_file import CTranslate2File  # noqa: E402

pytestmark = [pytest.mark.model, pytest.mark.slow]


def test_a_gguf_file_is_read_as_its_own_package_reads_it(smollm2_file):
    """Every tensor of one layer; queries and keys with their rotated pairs put apart."""
    gguf = pytest.importorskip("gguf", reason="needs the environment that scripts/gpu makes")
    from antiphon.gpu.weights.gguf_file import GgufFile

    own = GgufFile(smollm2_file)
    theirs = {
        tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        for tensor in gguf.GGUFReader(smollm2_file).tensors
    }

    down = own.tensor("model.layers.3.mlp.down_proj.weight").numpy()
    np.testing.assert_array_equal(theirs["blk.3.ffn_down.weight"], down)
    query, raw = own.tensor("model.layers.3.self_attn.q_proj.weight").numpy(), theirs["blk.3.attn_q.weight"]
    for head in range(9):
        first = 64 * head
        np.testing.assert_array_equal(raw[first : first + 64 : 2], query[first : first + 32])
        np.testing.assert_array_equal(raw[first + 1 : first + 64 : 2], query[first + 32 : first + 64])
    assert own.shape().is_tied
    assert 30 == own.shape().layers


def test_its_vocabulary_is_llama_cpps(smollm2_file):
    """The same tokens for words, digits, markers, accents and signs, as the engine on the processor has them."""
    pytest.importorskip("xllamacpp")
    from antiphon.gpu.llama.tokens import tokens_of_vocabulary
    from antiphon.gpu.weights.gguf_file import GgufFile
    from antiphon.think.llama_server import LlamaServer, ServerPlan

    server = LlamaServer(smollm2_file, ServerPlan(threads=1, conversations=1, context_tokens=256, batch_tokens=32))
    tokens = tokens_of_vocabulary(GgufFile(smollm2_file).vocabulary())
    texts = (
        "<|im_start|>user\nI'd like 2 large lattes at 14:30, please!<|im_end|>\n",
        "naïve café — 3,50 €  😀 \t tabs\nand  spaces ",
        "你好，世界",
        " ",
    )
    try:
        for text in texts:
            assert list(server.tokens(text)) == tokens.encode(text), text
            assert text == tokens.decode(tokens.encode(text))
    finally:
        server.close()


def test_whisper_writes_what_ctranslate2_writes(whisper_folder, corpus_folder):
    """Tokens, scores, no-speech probabilities and times of clips, both in f32."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    soundfile = pytest.importorskip("soundfile")
    from antiphon.gpu.engine_lane import open_gpu
    from antiphon.gpu.whisper.model import WhisperModel
    from antiphon.hear.mel import MelStream, normalised

    theirs = ctranslate2.models.Whisper(str(whisper_folder), device="cpu", compute_type="float32", intra_threads=2)
    gpu = open_gpu("cpu")
    own = WhisperModel.load(whisper_folder, gpu=gpu, dtype=torch.float32)
    equal = 0
    files = sorted(corpus_folder.glob("clean_*.flac"))[:20]
    for file in files:
        pcm, _ = soundfile.read(file, dtype="float32")
        window = normalised(MelStream(pcm).columns(len(pcm), 1000))
        features = ctranslate2.StorageView.from_array(window[None])
        asked = {
            "beam_size": 1,
            "max_length": 120,
            "no_repeat_ngram_size": 8,
            "return_scores": True,
            "return_no_speech_prob": True,
        }
        expected = theirs.generate(features, [[50257, 50362]], **asked)[0]
        encoded = own.encode([window])[0]
        found = own.generate([encoded], [[50257, 50362]], max_length=120, no_repeat=8)[0]
        equal += expected.sequences_ids[0] == found.tokens
        if expected.sequences_ids[0] == found.tokens:
            assert expected.scores[0] == pytest.approx(found.scores[0], abs=1e-3)
            assert expected.no_speech_prob == pytest.approx(found.no_speech_prob, abs=1e-4)
    times = theirs.align(features, [50257], [found.tokens], 1000)[0].alignments
    assert times == own.align(encoded, [50257], found.tokens, 1000)
    gpu.close()
    assert equal == len(files)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x63\0\0\0" + bytes(40), "the form 99"), (b"\x06\0\0\0\x0c\0Whis", "cut short"), (b"", "cannot be read")],
)
def test_foreign_and_broken_files_are_refused(tmp_path, content, said):
    """The message says what was found and what to do."""
    file = tmp_path / "model.bin"
    file.write_bytes(content)
    with pytest.raises(CallerError, match=said):
        CTranslate2File(file)
