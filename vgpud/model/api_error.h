// SPDX-License-Identifier: Apache-2.0
// Why something that a client asked for was not done.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace vgpud::daemon {

enum class ErrorKind : uint8_t {
  kInvalid,      // it can't be meant so, whatever the state
  kTooLarge,     // the request is
  kNotFound,     // no such VF, no such path
  kWrongMethod,  // not on this path
  kConflict,     // not in this state
  kFailed,       // tried, and it did not work
  kUnavailable,  // not now
  kForbidden,    // not for this client
  kTooMany,      // the client's share is used up
  kTimedOut,     // the client did not want to wait longer
};
struct ApiError {
  ErrorKind kind = ErrorKind::kFailed;
  std::string error;
  std::string field;  // of the request, empty if none
};
template <class T>
using ApiResult = tl::expected<T, ApiError>;
inline tl::unexpected<ApiError> ApiFail(ErrorKind kind, std::string error, std::string field = {}) {
  return tl::unexpected(ApiError{kind, std::move(error), std::move(field)});
}

}  // namespace vgpud::daemon
