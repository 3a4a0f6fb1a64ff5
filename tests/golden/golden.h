// SPDX-License-Identifier: Apache-2.0
// Golden tests: one PTX instruction, values in, values out. README.md describes the files. Needs nothing but the
// standard library, so that it runs in a unit test as well as in a program on any libcuda.so.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vgpud::golden {

enum class Kind { kB16, kB32, kB64, kPredicate };

// How far a floating-point result may be from the expected one: the larger of relative * |expected| and absolute.
struct Tolerance {
  enum class As { kBits, kF16, kBf16, kF32, kF64 } as = As::kBits;
  double relative = 0;
  double absolute = 0;
};

struct Column {
  std::string name;  // of the register in the code
  Kind kind = Kind::kB32;
  Tolerance tolerance;
};

struct Expected {
  uint64_t bits = 0;
  bool any_nan = false;
  double value = 0;  // where the column has a tolerance
};

struct Row {
  std::vector<uint64_t> in;
  std::vector<Expected> out;
};

// The texture or surface object that the code names as %t. The values of fields are those of the CUDA driver API.
struct Object {
  enum class Shape { k1d, k2d, k3d, kCube, kLinear, kPitched } shape = Shape::k1d;
  bool surface = false;
  bool layered = false;
  uint32_t width = 1, height = 1, depth = 1;
  uint32_t images = 1;  // layers, faces: six of each cube
  uint32_t levels = 1;
  uint32_t format = 0;  // CUarray_format
  uint32_t channels = 1;
  uint32_t address = 0;  // CUaddress_mode of every axis
  bool linear = false;
  bool mip_linear = false;
  bool normalized = false;
  bool read_float = false;
  bool srgb = false;
  float bias = 0, lowest = 0, highest = 0;  // of the level of detail
  float border[4] = {};
  std::vector<uint8_t> texels;  // level by level; x, then y, then z or image; no gaps
  std::vector<uint8_t> after;   // level 0 after the kernel; empty: not looked at
};
uint32_t TexelBytes(const Object& o);
// Extents of a level, and its bytes.
struct Extent {
  uint32_t width, height, depth;
  size_t bytes;
};
Extent ExtentOf(const Object& o, uint32_t level);

struct Form {
  std::string name;
  uint32_t line = 0;                // in its file
  uint32_t needs = 75;              // compute capability
  char reach = 0;                   // 'f': its family, later ones with the same first digits; 'a': nothing but it
  uint32_t block = 32;              // threads
  std::string version;              // of the PTX ISA; empty: the first that has what other forms use
  std::vector<std::string> module;  // lines before the kernel
  std::vector<Column> in;
  std::vector<Column> out;
  std::optional<Object> object;
  std::vector<std::string> code;
  std::vector<Row> rows;
};

// Does a GPU of this compute capability have the form? `all`: also where it says that it needs a later one.
bool RunsOn(const Form& f, uint32_t capability, bool all);

// All forms of the text of a golden file. On failure `error` says where and what; it is empty else.
std::vector<Form> Parse(std::string_view text, std::string& error);

// A launch of Form `f`: `f.block` threads a block, one row each, the last row repeated to fill the last block.
uint32_t BlocksOf(const Form& f);
// Bytes of global memory that each thread has to itself as [%m], zero at first.
inline constexpr uint32_t kPrivateBytes = 128;

// The kernel "golden"(.param .u64 in, .param .u64 out, .param .u64 memory, .param .u64 object).
std::string PtxOf(const Form& f);
// What `in` points to: 8 bytes per value, row by row.
std::vector<uint64_t> InputOf(const Form& f);

// Compares what the kernel stored at `out` (8 bytes per value, row by row). "": all is as expected; else some of
// `values_wrong`, a line each.
std::string Compare(const Form& f, const std::vector<uint64_t>& out, uint32_t* values_wrong = nullptr);
// The same of level 0 of the object.
std::string CompareObject(const Form& f, const std::vector<uint8_t>& texels);

// One of the lines "object", "texels", "after" of a form; false if it is wrong. For Parse.
bool ParseObjectLine(const std::vector<std::string>& words, Form& form);

}  // namespace vgpud::golden
