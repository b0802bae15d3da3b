"""Writes what the tests of text/ compare SentencePiece vocabularies with: the answers of `sentencepiece` and `tokenizers`.

    pip install -r tests/oracle/sentence_piece_requirements.txt
    python tests/oracle/make_sentence_piece_goldens.py

sentence_piece/vocabulary.gguf   a vocabulary trained on the text of this repository
sentence_piece/tokenizer.json    the same, in its first form
sentence_piece/forms.json        what each form has in the place of the first one's entries
sentence_piece_FORM.bin          strings: records of oracle_tokenizer, each with its ids as 16-bit numbers and the text of these
"""

import itertools
import json
import pathlib
import struct

import oracle_tokenizer as oracle
import sentence_piece

GOLDENS = pathlib.Path(__file__).resolve().parent / "goldens"
STRINGS, VOCABULARY, SEED, LONGEST = 60, 1000, 12, 160
NO_TEXT = struct.pack("<I", 0xFFFFFFFF)


def golden(vocabulary, encoder, decode):
    cases = sentence_piece.cases(vocabulary, SEED)
    data = b""
    for text in itertools.islice((s for s in iter(cases.string, None) if len(s) <= LONGEST), STRINGS):
        for mode in (oracle.PLAIN, oracle.CONTROLS):
            ids = encoder.encode(text, mode == oracle.CONTROLS)
            data += oracle.record(mode, text) + struct.pack(f"<I{len(ids)}H", len(ids), *ids)
            decoded = decode(ids)
            data += NO_TEXT if decoded is None else oracle.packed(decoded)
    return data


def main():
    folder = GOLDENS / "sentence_piece"
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = sentence_piece.train(VOCABULARY)
    sentence_piece.save_gguf(vocabulary, folder / "vocabulary.gguf")
    vocabulary = sentence_piece.from_gguf(folder / "vocabulary.gguf")
    encoder = sentence_piece.GgufOracle(vocabulary)
    (GOLDENS / "sentence_piece_gguf.bin").write_bytes(golden(vocabulary, encoder, encoder.decode))
    forms = {form: sentence_piece.tokenizer_json(vocabulary, form) for form in sentence_piece.FORMS}
    first = forms[sentence_piece.FORMS[0]]
    (folder / "tokenizer.json").write_text(json.dumps(first, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    changes = {}
    for form, data in forms.items():
        encoder = sentence_piece.JsonOracle(data)
        (GOLDENS / f"sentence_piece_{form}.bin").write_bytes(golden(vocabulary, encoder, encoder.decode))
        changes[form] = {key: value for key, value in data.items() if key != "model" and value != first[key]}
        changes[form]["ignore_merges"] = data["model"]["ignore_merges"]
    (folder / "forms.json").write_text(json.dumps(changes, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
