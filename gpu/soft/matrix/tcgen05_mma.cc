// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma of one block, without sparsity and block scales: D = A * B + D, of up to 128 x 256 elements and 32 bytes
// of k. D is in tensor memory, an element in each column of 32 bits; A is there or in shared memory, B in shared
// memory. The descriptor of the instruction (PTX ISA "Instruction descriptor") has types, shape and signs. Products are
// exact and added in order of k, beginning with D.
#include <cmath>

#include "gpu/soft/matrix/tensor_memory.h"
#include "gpu/soft/number/narrow.h"

namespace vgpud::soft::VGPUD_ISA {
namespace {

constexpr uint32_t kMostRows = 128;
constexpr uint32_t kMostColumns = 256;
constexpr uint32_t kRowBytes = 32;  // of A, and of a column of B
constexpr uint32_t kMostK = kRowBytes;
constexpr uint32_t kColumnsOfA = kRowBytes / 4;  // of tensor memory

template <class F>
struct Byte {
  using Memory = uint8_t;
  using Math = float;
  ALWAYS Math Get(uint32_t v) { return NarrowToFloat<F>(v); }
};

struct Product {
  TensorKind kind;
  bool saturate;
  uint32_t type_d, type_a, type_b;  // as the kind numbers them
  bool negative_a, negative_b;
  bool by_k_a, by_k_b;
  uint32_t columns, rows, k;

  Product(TensorKind of, uint32_t d)
      : kind(of),
        saturate((d >> 3 & 1) != 0),
        type_d(d >> 4 & 3),
        type_a(d >> 7 & 7),
        type_b(d >> 10 & 7),
        negative_a((d >> 13 & 1) != 0),
        negative_b((d >> 14 & 1) != 0),
        by_k_a((d >> 15 & 1) != 0),
        by_k_b((d >> 16 & 1) != 0),
        columns((d >> 17 & 63) * 8),
        rows((d >> 24 & 31) * 16),
        k(of == kKindF16    ? 16
          : of == kKindTf32 ? 8
                            : 32) {}
};

// What is wrong with it; nullptr: nothing.
const char* WrongWith(const Product& p, uint32_t descriptor, bool tensor_a) {
  constexpr uint32_t kReserved = 1u << 6 | 1u << 23 | 1u << 29 | 3u << 30;
  const bool integers = p.kind == kKindI8;
  if ((descriptor & 4) != 0) return "it asks for a sparse A, which .sp has";
  if ((descriptor & kReserved) != 0) return "bits that there are not are set";
  if (p.rows != 64 && p.rows != 128) return "M is 64 or 128";
  const bool few = p.columns == 8 || p.columns == 24;
  if (p.columns == 0 || p.columns > kMostColumns) return "N is a number from 8 to 256";
  if (p.columns % 16 != 0 && (p.rows == 128 || (integers && !few)))
    return "N is a multiple of 16 where M is 128, and for integers above 24";
  if (p.type_d != (integers ? 2 : 1) && (p.kind == kKindI8 || p.kind == kKindTf32 || p.type_d != 0))
    return "the kind does not have this type of D";
  const auto known = [&](uint32_t type) {
    return p.kind == kKindTf32 ? type == 2 : p.kind == kKindF8 ? type <= 5 && type != 2 : type <= 1;
  };
  if (!known(p.type_a) || !known(p.type_b)) return "the kind does not have this type of A or B";
  if (p.kind == kKindF8 && (p.type_a > 1 || p.type_b > 1))
    return "elements of 4 and 6 bits are not ones that the soft GPU has";
  if (integers ? p.negative_a || p.negative_b : p.saturate) return "the kind has no such sign or saturation";
  if (tensor_a && p.by_k_a) return "A in tensor memory is not transposed";
  if (p.kind == kKindTf32 && (p.by_k_a || p.by_k_b)) return "transposed tf32 is not something that the soft GPU has";
  return nullptr;
}

// put(line, k, value) for all of `lines` lines. False: a fault was raised.
template <class E, class Put>
bool ReadShared(Warp& w, const Inst* i, const SharedMatrix& matrix, bool by_k, uint32_t lines, Put put) {
  constexpr uint32_t kInPiece = kPieceBytes / sizeof(typename E::Memory);
  const uint32_t whole = (lines + kInPiece - 1) / kInPiece * kInPiece;  // a piece may have more lines than there are
  return ReadLines<E, kRowBytes / sizeof(typename E::Memory)>(w, i, matrix, by_k, 0, by_k ? whole : lines,
                                                              [&](uint32_t line, uint32_t k, typename E::Math v) {
                                                                if (line < lines) put(line, k, v);
                                                              });
}

// f(E{}) with the element of that type.
template <class Math, class F>
ALWAYS bool WithElement(TensorKind kind, uint32_t type, F f) {
  if constexpr (kIsFloat<Math>) {
    if (kind == kKindTf32) return f(Tf32{});
    if (kind == kKindF16) return type == 0 ? f(F16{}) : f(Bf16{});
    return type == 0 ? f(Byte<E4m3>{}) : f(Byte<E5m2>{});
  } else {
    return type == 0 ? f(U8{}) : f(S8{});
  }
}

// The lane of a row, from that of the address on.
ALWAYS uint32_t LaneOfRow(const Product& p, uint32_t row) { return p.rows == 64 ? row / 16 * 32 + row % 16 : row; }

// What one lane hands over.
struct Handed {
  uint32_t to;       // D
  uint64_t a, b;     // a: address or descriptor
  bool add;          // D counts
  uint32_t skip[4];  // lanes that are not written
};

// A as a[row * kMostK + k].
template <class Math>
[[gnu::noinline]] bool ReadRows(Warp& w, const Inst* i, const Product& p, const Handed& in, Math* a) {
  SharedMatrix matrix(0);
  const bool in_tensor = (i->aux & kTensorA) != 0;
  if (in_tensor ? !ReachColumns(w, i, static_cast<uint32_t>(in.a), kColumnsOfA) : !MatrixOf(w, i, in.a, matrix))
    return false;
  const bool read = WithElement<Math>(p.kind, p.type_a, [&]<class E>(E) {
    if (!in_tensor)
      return ReadShared<E>(w, i, matrix, p.by_k_a, p.rows,
                           [&](uint32_t row, uint32_t k, Math v) { a[row * kMostK + k] = v; });
    const auto address = static_cast<uint32_t>(in.a);
    for (uint32_t row = 0; row < p.rows; ++row) {
      typename E::Memory v[kRowBytes / sizeof(typename E::Memory)];
      __builtin_memcpy(v, TensorAt(w, TensorLane(address) + LaneOfRow(p, row), TensorColumn(address)), sizeof v);
      for (uint32_t k = 0; k < p.k; ++k) a[row * kMostK + k] = E::Get(v[k]);
    }
    return true;
  });
  for (uint32_t n = 0; read && p.negative_a && n < p.rows * kMostK; ++n) a[n] = -a[n];
  return read;
}
// B as b[k * columns + column].
template <class Math>
[[gnu::noinline]] bool ReadColumns(Warp& w, const Inst* i, const Product& p, const Handed& in, Math* b) {
  SharedMatrix matrix(0);
  if (!MatrixOf(w, i, in.b, matrix)) return false;
  const bool read = WithElement<Math>(p.kind, p.type_b, [&]<class E>(E) {
    return ReadShared<E>(w, i, matrix, p.by_k_b, p.columns,
                         [&](uint32_t column, uint32_t k, Math v) { b[k * p.columns + column] = v; });
  });
  for (uint32_t n = 0; read && p.negative_b && n < p.k * p.columns; ++n) b[n] = -b[n];
  return read;
}

// D of one row, which counts if `add` says so.
template <class D>
ALWAYS void ReadSums(const std::byte* at, uint32_t columns, bool add, float scale, typename D::Math* sum) {
  for (uint32_t n = 0; n < columns; ++n) {
    uint32_t v = 0;
    if (add) __builtin_memcpy(&v, at + size_t{n} * 4, sizeof v);
    sum[n] = D::Get(static_cast<typename D::Memory>(v));
    if constexpr (kIsFloat<typename D::Math>) sum[n] *= scale;
  }
}
template <class D>
ALWAYS void WriteSums(std::byte* at, uint32_t columns, const typename D::Math* sum) {
  for (uint32_t n = 0; n < columns; ++n) {
    const uint32_t v = D::Put(sum[n]);
    __builtin_memcpy(at + size_t{n} * 4, &v, sizeof v);
  }
}

// False: a fault was raised, and nothing is written.
template <class D>
[[gnu::noinline]] bool Multiply(Warp& w, const Inst* i, const Product& p, const Handed& in) {
  using Math = typename D::Math;
  alignas(64) Math a[kMostRows * kMostK] = {};
  alignas(64) Math b[kMostK * kMostColumns];
  if (!ReadRows(w, i, p, in, a) || !ReadColumns(w, i, p, in, b)) return false;
  const float scale = std::ldexp(1.0f, -static_cast<int>(i->aux >> kTensorScaleShift));
  for (uint32_t row = 0; row < p.rows; ++row) {
    const uint32_t lane = TensorLane(in.to) + LaneOfRow(p, row);
    if ((in.skip[lane / 32] >> lane % 32 & 1) != 0) continue;
    alignas(64) Math sum[kMostColumns];
    alignas(64) Math products[kMostColumns] = {};
    std::byte* at = TensorAt(w, lane, TensorColumn(in.to));
    ReadSums<D>(at, p.columns, in.add, scale, sum);
    Math* to = p.saturate ? products : sum;
    for (uint32_t k = 0; k < p.k; ++k) {
      const Math x = a[row * kMostK + k];
      for (uint32_t n = 0; n < p.columns; ++n) to[n] += x * b[k * p.columns + n];
    }
    if constexpr (!kIsFloat<Math>) {
      for (uint32_t n = 0; p.saturate && n < p.columns; ++n) {
        const int64_t v = int64_t{sum[n]} + products[n];
        sum[n] = static_cast<Math>(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
      }
    }
    WriteSums<D>(at, p.columns, sum);
  }
  return true;
}

// Operands: D 0, A 1, B 2, the descriptor of the instruction 3; extra operands: does D count (a predicate), and the
// lanes that are not written. One lane at a time, so that an instruction is short: the others come again.
const Inst* Mma(Warp& w, const Inst* i) {
  const uint32_t lane = FirstLane(w);
  const uint32_t descriptor = In<uint32_t>(w, i, 3)[lane];
  const bool tensor_a = (i->aux & kTensorA) != 0;
  const Product p(static_cast<TensorKind>(i->aux & kTensorKinds), descriptor);
  if (const char* wrong = WrongWith(p, descriptor, tensor_a); wrong != nullptr)
    return TensorFault(w, i, CuStatus::kIllegalInstruction,
                       fmt::format("tcgen05.mma with the instruction descriptor {:#x}: {}", descriptor, wrong));
  const auto add_d = static_cast<uint32_t>(i->imm);
  const auto add_a = static_cast<uint32_t>(static_cast<uint64_t>(i->imm) >> 32);
  Handed in = {};
  in.to = In<uint32_t>(w, i, 0)[lane] + add_d;
  in.a = tensor_a ? In<uint32_t>(w, i, 1)[lane] + add_a : In<uint64_t>(w, i, 1)[lane];
  in.b = In<uint64_t>(w, i, 2)[lane];
  in.add = (*Fragment<F32>(w, i, 0) >> lane & 1) != 0;
  for (uint32_t n = 0; (i->aux & kTensorDisable) != 0 && n < 4; ++n) in.skip[n] = Fragment<F32>(w, i, 1 + n)[lane];
  for (const uint32_t address : {in.to, tensor_a ? static_cast<uint32_t>(in.a) : 0}) {
    const uint32_t first = TensorLane(address);
    if (first != 0 && (p.rows != 64 || first != 16))
      return TensorFault(
          w, i, CuStatus::kIllegalAddress,
          fmt::format("tensor memory at {:#x}: a matrix begins at lane 0, or 16 where M is 64", address));
  }
  if (!ReachColumns(w, i, in.to, p.columns)) return i;
  const bool done = p.kind == kKindI8 ? Multiply<S32>(w, i, p, in)
                    : p.type_d == 0   ? Multiply<F16>(w, i, p, in)
                                      : Multiply<F32>(w, i, p, in);
  if (!done) return i;
  const uint32_t rest = w.mask & (w.mask - 1);
  return rest == 0 ? i + 1 : Diverge(w, i, rest, i + 1, 1u << lane);
}

}  // namespace

OpRows TensorMmaRows() {
  static const OpRow kRows[] = {{"@tcgen05.mma", Mma, ""}};
  return {kRows, 1};
}

}  // namespace vgpud::soft::VGPUD_ISA
