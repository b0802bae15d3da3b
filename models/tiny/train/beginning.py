"""The weights that training begins with: random, and shaped so that copying is found early.

Every embedding shares one direction, by which the first heads of layer 0 look one and two tokens back. Later layers look for
what resembles the token in question or its neighbour, and pass on what they find as it is. Everything is free to change.
"""

import math

import torch

HIDDEN, HEAD, HEADS, KV_HEADS, ROPE_THETA = 192, 64, 6, 2, 10000.0
NOISE, SHARED = 0.04, 0.3
LOOK_BACK = (1, 1, 2)  # of the query heads that read KV head 0 in layer 0
LOOK_SCALE, MATCH_SCALE, PASS_SCALE = 0.2, 0.8, 0.5


def looking_back(distance):
    """The query that, against a key of ones, is answered most by the token `distance` before it, under half-rotated rope."""
    frequencies = ROPE_THETA ** (-torch.arange(HEAD // 2) * 2 / HEAD)
    angles = math.pi / 4 - distance * frequencies
    return torch.cat([torch.cos(angles), torch.sin(angles)]) * math.sqrt(2)


def projections(generator, direction):
    """For each KV head 64 directions, none shared between the two, all at right angles to `direction`."""
    columns = torch.randn(HIDDEN, 2 * HEAD, generator=generator)
    basis, _ = torch.linalg.qr(torch.cat([direction[:, None], columns], dim=1))
    return basis[:, 1:HEAD + 1].T, basis[:, HEAD + 1:].T


@torch.no_grad()
def shape(model, seed):
    generator = torch.Generator().manual_seed(seed)
    direction = torch.nn.functional.normalize(torch.randn(HIDDEN, generator=generator), dim=0)
    embedding = model.model.embed_tokens.weight
    embedding.copy_(torch.randn(embedding.shape, generator=generator) * NOISE + SHARED * direction)
    for index, layer in enumerate(model.model.layers):
        attention = layer.self_attn
        passes, matches = projections(generator, direction), projections(generator, direction)
        for kv_head in range(KV_HEADS):
            rows = slice(kv_head * HEAD, (kv_head + 1) * HEAD)
            attention.v_proj.weight[rows] = passes[kv_head]
            for head in range(kv_head * HEADS // KV_HEADS, (kv_head + 1) * HEADS // KV_HEADS):
                columns = slice(head * HEAD, (head + 1) * HEAD)
                attention.o_proj.weight[:, columns] += PASS_SCALE * passes[kv_head].T
                if index > 0:
                    attention.q_proj.weight[columns] += MATCH_SCALE * matches[kv_head]
                elif kv_head == 0:
                    attention.q_proj.weight[columns] += LOOK_SCALE * torch.outer(looking_back(LOOK_BACK[head]), direction)
            if index > 0:
                attention.k_proj.weight[rows] += MATCH_SCALE * matches[kv_head]
            elif kv_head == 0:
                attention.k_proj.weight[rows] += LOOK_SCALE * torch.outer(torch.ones(HEAD), direction)
