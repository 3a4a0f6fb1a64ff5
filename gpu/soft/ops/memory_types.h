// SPDX-License-Identifier: Apache-2.0
// The types that plain loads and stores of memory have: one row of an op table each. LOAD and STORE are macros of
// (type's name, type in memory, bits of the slot as text, type of the slot) that give such rows.
#pragma once

#define MEMORY_TYPE_ROWS(LOAD, STORE)                                                                                 \
  LOAD("u8", uint8_t, "32", uint32_t), LOAD("s8", int8_t, "32", uint32_t), LOAD("u16", uint16_t, "32", uint32_t),     \
      LOAD("s16", int16_t, "32", uint32_t), LOAD("u32", uint32_t, "32", uint32_t),                                    \
      LOAD("u8", uint8_t, "64", uint64_t), LOAD("s8", int8_t, "64", uint64_t), LOAD("u16", uint16_t, "64", uint64_t), \
      LOAD("s16", int16_t, "64", uint64_t), LOAD("u32", uint32_t, "64", uint64_t),                                    \
      LOAD("s32", int32_t, "64", uint64_t), LOAD("u64", uint64_t, "64", uint64_t),                                    \
      STORE("u8", uint8_t, "32", uint32_t), STORE("u16", uint16_t, "32", uint32_t),                                   \
      STORE("u32", uint32_t, "32", uint32_t), STORE("u8", uint8_t, "64", uint64_t),                                   \
      STORE("u16", uint16_t, "64", uint64_t), STORE("u32", uint32_t, "64", uint64_t),                                 \
      STORE("u64", uint64_t, "64", uint64_t)
