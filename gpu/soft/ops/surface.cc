// SPDX-License-Identifier: Apache-2.0
// suld, sust and sured (PTX ISA "Surface Instructions"). Sources: handle, layer if there is one, coordinates, then the
// values to be stored. The first coordinate is in bytes, that of the formatted forms (.p) in texels.
#include <type_traits>

#include "gpu/soft/ops/texture.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

enum class Place { kThere, kOutside, kFault };

// Where one lane's access goes.
struct Access {
  Warp& w;
  const Inst* i;
  const TextureForm form;
  const bool in_texels;
  const char* what;
  std::byte* at = nullptr;

  Place Find(const Texture& t, uint32_t lane) {
    const TextureLevel& level = t.levels[0];
    const auto size = static_cast<int64_t>(in_texels ? t.texel_bytes : uint32_t{form.bytes} * ElementCount());
    uint32_t source = 1;
    int64_t slice = form.layered ? Source(source++, lane) : 0;
    int64_t at_axis[3] = {0, 0, 0};
    for (uint32_t a = 0; a < form.axes; ++a) at_axis[a] = Source(source++, lane);
    if (in_texels) at_axis[0] *= t.texel_bytes;
    const int64_t last[4] = {static_cast<int64_t>(uint64_t{level.width} * t.texel_bytes) - size, level.height - 1,
                             level.depth - 1, int64_t{t.slices} - 1};
    int64_t* const axis[4] = {&at_axis[0], &at_axis[1], &at_axis[2], &slice};
    for (uint32_t a = 0; a < 4; ++a) {
      if (*axis[a] >= 0 && *axis[a] <= last[a]) continue;
      if (form.outside == Outside::kZero) return Place::kOutside;
      if (form.outside == Outside::kTrap || last[a] < 0) {
        RaiseFault(w, i, CuStatus::kLaunchFailed, lane,
                   fmt::format(
                       "{} of {} bytes at x = {} {}, y = {}, z = {}, layer {} is outside of a surface of {} x {} "
                       "x {} texels of {} bytes, {} layers",
                       what, size, in_texels ? at_axis[0] / t.texel_bytes : at_axis[0], in_texels ? "texels" : "bytes",
                       at_axis[1], at_axis[2], slice, level.width, level.height, level.depth, t.texel_bytes, t.slices));
        return Place::kFault;
      }
      *axis[a] = *axis[a] < 0 ? 0 : last[a];
    }
    const uint64_t offset = level.offset + static_cast<uint64_t>(at_axis[0]) +
                            static_cast<uint64_t>(at_axis[1]) * level.pitch +
                            static_cast<uint64_t>(at_axis[2] + slice) * level.slice;
    at = w.arena != nullptr ? MemoryOf(w).At(offset, static_cast<uint32_t>(size)) : nullptr;
    const bool misaligned = !in_texels && (offset & static_cast<uint64_t>(size - 1)) != 0;
    if (at != nullptr && !misaligned) return Place::kThere;
    RaiseAddressFault(w, i, misaligned ? CuStatus::kMisalignedAddress : CuStatus::kIllegalAddress, lane,
                      offset + kArenaVa, static_cast<uint32_t>(size), what);
    return Place::kFault;
  }
  // The first source behind the coordinates.
  uint32_t FirstValue() const { return 1u + (form.layered ? 1 : 0) + form.axes; }

 private:
  uint32_t ElementCount() const { return form.count; }
  int64_t Source(uint32_t n, uint32_t lane) const { return static_cast<int32_t>(SourceOf<uint32_t>(w, i, n)[lane]); }
};

// f(lane, texture, place) for each active lane, place nullptr where the access is dropped; false when a fault was
// raised.
template <class F>
ALWAYS bool ForLanes(Access& access, F f) {
  return ForTexturesOfLanes(access.w, access.i, true, [&](uint32_t lane, const Texture& t) {
    const Place place = access.Find(t, lane);
    if (place != Place::kFault) f(lane, t, place == Place::kThere ? access.at : nullptr);
    return place != Place::kFault;
  });
}

const Inst* OpSurfaceLoad(Warp& w, const Inst* i) {
  Access access{w, i, FormOf(i), false, "surface load"};
  const TextureForm& form = access.form;
  const bool done = ForLanes(access, [&](uint32_t lane, const Texture&, const std::byte* at) {
    for (int e = 0; e < form.count; ++e) {
      uint64_t value = 0;
      if (at != nullptr) __builtin_memcpy(&value, at + e * form.bytes, form.bytes);
      if (form.bytes == 8) {
        Out<uint64_t>(w, i, e)[lane] = value;
      } else {
        Out<uint32_t>(w, i, e)[lane] = static_cast<uint32_t>(value);
      }
    }
  });
  return done ? i + 1 + form.carriers : i;
}

const Inst* OpSurfaceStore(Warp& w, const Inst* i) {
  Access access{w, i, FormOf(i), false, "surface store"};
  const TextureForm& form = access.form;
  const bool done = ForLanes(access, [&](uint32_t lane, const Texture&, std::byte* at) {
    if (at == nullptr) return;
    for (uint32_t e = 0; e < form.count; ++e) {
      const uint32_t source = access.FirstValue() + e;
      const uint64_t value =
          form.bytes == 8 ? SourceOf<uint64_t>(w, i, source)[lane] : SourceOf<uint32_t>(w, i, source)[lane];
      __builtin_memcpy(at + e * form.bytes, &value, form.bytes);
    }
  });
  return done ? i + 1 + form.carriers : i;
}

const Inst* OpSurfaceStoreFormatted(Warp& w, const Inst* i) {
  Access access{w, i, FormOf(i), true, "surface store"};
  const TextureForm& form = access.form;
  const bool done = ForLanes(access, [&](uint32_t lane, const Texture& t, std::byte* at) {
    if (at == nullptr) return;
    for (uint32_t c = 0; c < form.count && c < t.desc.channels; ++c)
      WriteChannel(t.format, SourceOf<uint32_t>(w, i, access.FirstValue() + c)[lane], at + c * t.channel_bytes);
  });
  return done ? i + 1 + form.carriers : i;
}

enum class Reduce { kAdd, kMin, kMax, kAnd, kOr };

template <class T>
ALWAYS T Combined(Reduce how, T d, T v) {
  switch (how) {
    case Reduce::kAdd:
      return static_cast<T>(d + v);
    case Reduce::kMin:
      return d < v ? d : v;
    case Reduce::kMax:
      return d > v ? d : v;
    case Reduce::kAnd:
      return static_cast<T>(d & v);
    case Reduce::kOr:
      break;
  }
  return static_cast<T>(d | v);
}

bool IsSigned(TexelFormat f) { return f == TexelFormat::kS8 || f == TexelFormat::kS16 || f == TexelFormat::kS32; }

// T says how values compare; of formatted ones the surface does, and T is unsigned.
template <class T, Reduce kHow, bool kFormatted>
const Inst* OpSurfaceReduce(Warp& w, const Inst* i) {
  Access access{w, i, FormOf(i), kFormatted, "surface reduction"};
  const TextureForm& form = access.form;
  const bool done = ForLanes(access, [&](uint32_t lane, const Texture& t, std::byte* at) {
    // A formatted reduction needs texels of its own size.
    if (at == nullptr || (kFormatted && t.texel_bytes < sizeof(T))) return;
    using Signed = std::make_signed_t<T>;
    const T value = Bits<T>(SourceOf<T>(w, i, access.FirstValue())[lane]);
    const bool is_signed = kFormatted && IsSigned(t.format);
    const auto combine = [&](T old) {
      return is_signed ? static_cast<T>(Combined(kHow, static_cast<Signed>(old), static_cast<Signed>(value)))
                       : Combined(kHow, old, value);
    };
    auto* to = reinterpret_cast<T*>(at);
    T old = __atomic_load_n(to, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(to, &old, combine(old), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  });
  return done ? i + 1 + form.carriers : i;
}

}  // namespace

OpRows SurfaceRows() {
#define SURFACE(form, handler)                                                                                   \
  {form ".1d", handler, ""}, {form ".2d", handler, ""}, {form ".3d", handler, ""}, {form ".a1d", handler, ""}, { \
    form ".a2d", handler, ""                                                                                     \
  }
#define REDUCE(form, how, name, type, T) \
  { "@sured." form "." name "." type, OpSurfaceReduce<T, Reduce::how, form[0] == 'p'>, "" }
  static const OpRow kRows[] = {
      SURFACE("suld.b", OpSurfaceLoad),           SURFACE("sust.b", OpSurfaceStore),
      SURFACE("sust.p", OpSurfaceStoreFormatted), REDUCE("b", kAdd, "add", "u32", uint32_t),
      REDUCE("b", kAdd, "add", "s32", uint32_t),  REDUCE("b", kAdd, "add", "u64", uint64_t),
      REDUCE("b", kMin, "min", "u32", uint32_t),  REDUCE("b", kMin, "min", "s32", int32_t),
      REDUCE("b", kMin, "min", "u64", uint64_t),  REDUCE("b", kMin, "min", "s64", int64_t),
      REDUCE("b", kMax, "max", "u32", uint32_t),  REDUCE("b", kMax, "max", "s32", int32_t),
      REDUCE("b", kMax, "max", "u64", uint64_t),  REDUCE("b", kMax, "max", "s64", int64_t),
      REDUCE("b", kAnd, "and", "b32", uint32_t),  REDUCE("b", kOr, "or", "b32", uint32_t),
      REDUCE("p", kAdd, "add", "b32", uint32_t),  REDUCE("p", kMin, "min", "b32", uint32_t),
      REDUCE("p", kMin, "min", "b64", uint64_t),  REDUCE("p", kMax, "max", "b32", uint32_t),
      REDUCE("p", kMax, "max", "b64", uint64_t),  REDUCE("p", kAnd, "and", "b32", uint32_t),
      REDUCE("p", kOr, "or", "b32", uint32_t),
  };
  return {kRows, sizeof(kRows) / sizeof(kRows[0])};
}

}  // namespace vgpud::soft::VGPUD_ISA
