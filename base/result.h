// SPDX-License-Identifier: Apache-2.0
// Errors are values: Result<T> carries a T or an Error. An Error's code is an errno, because that is what a
// vfio-user reply, a control reply and an exit status carry.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace vgpud {

struct Error {
  std::errc code;
  std::string context;  // who, what, why, and the next step when there is one
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> Fail(std::errc code, std::string context) {
  return tl::unexpected(Error{code, std::move(context)});
}

// Fail with the current errno; its text is appended to `context`.
inline tl::unexpected<Error> FailErrno(std::string context) {
  const auto code = static_cast<std::errc>(errno);
  context += ": " + std::make_error_code(code).message();
  return tl::unexpected(Error{code, std::move(context)});
}

template <class T, class E>
T Take(tl::expected<T, E>&& r) {
  return std::move(*r);
}
template <class E>
void Take(tl::expected<void, E>&&) {}

}  // namespace vgpud

// Unwraps an expected value or returns its error to our caller. Not behind `new`: what that has allocated would stay.
#define TRY(expr)                                                \
  __extension__({                                                \
    auto try_r = (expr);                                         \
    if (!try_r) return tl::unexpected(std::move(try_r).error()); \
    ::vgpud::Take(std::move(try_r));                             \
  })
