// SPDX-License-Identifier: Apache-2.0
// Is this a build with a sanitizer? Its runtime needs files, signals, memory and system calls of its own, so such a
// build is confined by nothing.
#pragma once

#ifndef __has_feature
#define __has_feature(x) 0
#endif

namespace vgpud {

inline constexpr bool kSanitizerBuild =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
    true;
#else
    false;
#endif

// May memory be mapped at fixed addresses in the middle of the address space (base/jail/rules.h)? The address sanitizer
// keeps to both ends and to its heap behind 0x500000000000; the others tell what memory is by where it lies.
inline constexpr bool kFixedAddresses =
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
    false;
#else
    true;
#endif

}  // namespace vgpud
