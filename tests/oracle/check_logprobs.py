#!/usr/bin/env python3
"""Are a running server's log-probabilities transformers' own?

    check_logprobs.py --server HOST:PORT      a pagoda-server with SmolLM2-135M-Instruct, started with
                                              --activation-dtype f32 --kv-cache-dtype f32

Sends the texts of goldens/logprobs_smollm2.txt and compares the log-probability and the five likeliest tokens of every token of
prompt and greedy answer. Passed (exit code 0) when no value differs by more than 1e-4 and tokens differ only where their values
are that close.
"""

import argparse
import pathlib
import sys

from check_gate_a import generated_stubs

GOLDEN = pathlib.Path(__file__).resolve().parent / "goldens/logprobs_smollm2.txt"
MAX_ERROR, NUM_TOP = 1e-4, 5


def texts():
    lines = GOLDEN.read_text().splitlines()
    while lines:
        _, count, _, num_prompt = lines[0].split()
        ids = [int(t) for t in lines[1].split()]
        yield ids, int(num_prompt), [[float(x) for x in row.split()] for row in lines[2:int(count) + 1]]
        lines = lines[int(count) + 1:]


def answers(stub, messages, ids, num_prompt):
    request = messages.GenerateRequest(token_ids=messages.TokenIds(ids=ids[:num_prompt]))
    request.sampling.temperature = 0
    request.stop.max_tokens = len(ids) - num_prompt
    request.stop.ignore_eos = True
    request.output.logprobs = request.output.prompt_logprobs = NUM_TOP
    prompt, reply = [], []
    for response in stub.Generate(request):
        prompt += response.prompt.logprobs
        for delta in response.deltas:
            reply += delta.logprobs
    return prompt + reply


def main():
    import grpc

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    messages, services = generated_stubs()
    stub = services.InferenceServiceStub(grpc.insecure_channel(parser.parse_args().server))
    largest, compared, wrong = 0.0, 0, 0
    for ids, num_prompt, rows in texts():
        scores = answers(stub, messages, ids, num_prompt)
        assert len(scores) == len(rows), (len(scores), len(rows))
        for score, row in zip(scores, rows):
            wanted = list(zip(row[3::2], row[4::2]))
            wrong += score.token_id != row[0]
            largest = max(largest, abs(score.logprob - row[1]))
            for got, (token, value) in zip(score.top, wanted, strict=True):
                largest = max(largest, abs(got.logprob - value))
                wrong += got.token_id != token and all(abs(got.logprob - v) > MAX_ERROR for t, v in wanted if t != token)
                compared += 1
    print(f"{compared} alternatives compared, largest difference {largest:.3g}, {wrong} wrong tokens")
    sys.exit(0 if largest <= MAX_ERROR and wrong == 0 else 1)


if __name__ == "__main__":
    main()
