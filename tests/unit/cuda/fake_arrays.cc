// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cuda/fake_arrays.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace fake_cuda {
namespace {

constexpr Status kInvalidValue = 1;
constexpr int kArray = 3;
constexpr uint64_t kFirstTexture = 77;
std::string noted;

template <class... Args>
void NoteThat(const char* format, Args... args) {
  char line[128];
  std::snprintf(line, sizeof line, format, args...);
  Note(line);
}

size_t Rows(const Array& array) { return std::max<size_t>(array.height, 1); }
size_t Slices(const Array& array) { return std::max<size_t>(array.depth, 1); }
// CU_AD_FORMAT: the number has the bits of a channel in it.
size_t RowBytes(const Array& array) {
  const unsigned channel = array.format == 0x20 || array.format == 0x03 ? 4 : array.format == 0x01 ? 1 : 2;
  return array.width * channel * array.channels;
}
unsigned char* RowOf(Array& array, size_t y, size_t z) {
  return &array.texels[RowBytes(array) * (Rows(array) * Slices(array) - 1 - (z * Rows(array) + y))];
}
Array Empty(const Array& shape, unsigned level) {
  const auto halved = [level](size_t extent) { return extent == 0 ? 0 : std::max<size_t>(extent >> level, 1); };
  Array array{halved(shape.width), halved(shape.height), shape.depth, shape.format, shape.channels, shape.flags, {}};
  array.texels.resize(RowBytes(array) * Rows(array) * Slices(array));
  return array;
}

}  // namespace

void Note(const char* line) { noted += line; }

const char* TakeNotes() {
  static std::string told;
  told = std::exchange(noted, {});
  return told.c_str();
}

Status MakeArray(Array** out, const Array* shape) {
  NoteThat("array of %zu x %zu x %zu, flags %u\n", shape->width, shape->height, shape->depth, shape->flags);
  *out = new Array(Empty(*shape, 0));
  return 0;
}

Status EndArray(Array* array) {
  NoteThat("no array of %zu\n", array->width);
  delete array;
  return 0;
}

Status MakeLevels(Levels** out, const Array* shape, unsigned count) {
  *out = new Levels;
  for (unsigned n = 0; n < count; ++n) (*out)->levels.push_back(Empty(*shape, n));
  return 0;
}

Status LevelOf(Array** out, Levels* levels, unsigned number) {
  *out = &levels->levels.at(number);
  return 0;
}

Status EndLevels(Levels* levels) {
  delete levels;
  return 0;
}

Status Copy(const Copy3d& copy) {
  const auto row = [](const Side& side, size_t y, size_t z) {
    if (side.kind == kArray) return RowOf(*side.array, side.y + y, side.z + z);
    return reinterpret_cast<unsigned char*>(side.device + (z * side.rows + y) * side.pitch);
  };
  for (size_t z = 0; z < copy.depth; ++z)
    for (size_t y = 0; y < copy.height; ++y) std::memcpy(row(copy.to, y, z), row(copy.from, y, z), copy.width);
  NoteThat("%zu x %zu rows %s\n", copy.height, copy.depth, copy.to.kind == kArray ? "in" : "out");
  return 0;
}

Status MakeTexture(uint64_t* out, const Resource* resource, const void*, const void*) {
  static uint64_t next = kFirstTexture;
  NoteThat("texture of kind %d\n", resource->kind);
  *out = next++;
  return 0;
}

Status EndTexture(uint64_t texture) { return texture >= kFirstTexture ? 0 : kInvalidValue; }

Status MakeSurface(uint64_t* out, const Resource* resource) {
  *out = reinterpret_cast<uint64_t>(resource->array);
  return 0;
}

Status EndSurface(uint64_t) { return 0; }

}  // namespace fake_cuda
