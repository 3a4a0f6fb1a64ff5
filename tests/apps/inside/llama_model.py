#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a tiny llama model with random weights: llama_model.py FILE F32|F16|Q8_0|Q4_0 [WIDTH LAYERS CONTEXT]. A vocabulary of the
256 bytes. What it says is nonsense, but the same nonsense on every machine that computes correctly."""
import sys

import gguf
import numpy

WIDTH, LAYERS, CONTEXT = (int(word) for word in sys.argv[3:] or (256, 2, 512))
HEAD = 64
FORWARD, HEADS = 2 * WIDTH, WIDTH // HEAD
KV_HEADS = HEADS // 2
# How much each token calls for a certain next one. Without that the best two are often so close that rounding decides.
LEAN = 1.0


def vocabulary(writer):
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    return len(tokens)


def weights(rows):
    """(name, shape) of all matrices, then of all vectors."""
    matrices = [("token_embd", (rows, WIDTH)), ("output", (rows, WIDTH))]
    vectors = ["output_norm"]
    for layer in range(LAYERS):
        matrices += [(f"blk.{layer}.attn_q", (WIDTH, WIDTH)), (f"blk.{layer}.attn_k", (KV_HEADS * HEAD, WIDTH)),
                     (f"blk.{layer}.attn_v", (KV_HEADS * HEAD, WIDTH)), (f"blk.{layer}.attn_output", (WIDTH, WIDTH)),
                     (f"blk.{layer}.ffn_gate", (FORWARD, WIDTH)), (f"blk.{layer}.ffn_up", (FORWARD, WIDTH)),
                     (f"blk.{layer}.ffn_down", (WIDTH, FORWARD))]
        vectors += [f"blk.{layer}.attn_norm", f"blk.{layer}.ffn_norm"]
    return matrices, vectors


def main(path, kind):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HEAD)
    rows = vocabulary(writer)
    writer.add_vocab_size(rows)
    quantization = gguf.GGMLQuantizationType[kind]
    random = numpy.random.default_rng(20)
    matrices, vectors = weights(rows)
    embedding = random.standard_normal((rows, WIDTH))
    for name, shape in matrices:
        data = random.standard_normal(shape) / shape[1] ** 0.5
        if name == "token_embd":
            data = embedding
        elif name == "output":
            data += LEAN * embedding[random.permutation(rows)] / shape[1] ** 0.5
        data = data.astype(numpy.float32)
        if kind == "F32":
            writer.add_tensor(f"{name}.weight", data)
        elif kind == "F16":
            writer.add_tensor(f"{name}.weight", data.astype(numpy.float16))
        else:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(data, quantization), raw_dtype=quantization)
    for name in vectors:
        writer.add_tensor(f"{name}.weight", numpy.ones(WIDTH, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(sys.argv[1], sys.argv[2])
