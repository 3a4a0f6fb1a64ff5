// SPDX-License-Identifier: Apache-2.0
// Is this a build with a sanitizer? Its runtime needs files, signals, memory and system calls of its own, so such a
// build is confined by nothing.
#pragma once

namespace vgpud {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitizerBuild = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kSanitizerBuild = true;
#else
inline constexpr bool kSanitizerBuild = false;
#endif
#else
inline constexpr bool kSanitizerBuild = false;
#endif

}  // namespace vgpud
