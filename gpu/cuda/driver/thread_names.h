// SPDX-License-Identifier: Apache-2.0
// The driver names its threads through /proc/self/task/N/comm, and takes a file that is not there for fatal. A program
// that calls AnswerThreadNames() gets an fopen of its own in front of the C library's, which a library that is loaded
// later calls, too.
#pragma once

namespace vgpud::driver {

// From now on such a file that can't be opened is answered by a stream that takes everything and keeps nothing, without
// a system call: in the jail there is no /proc. All other files are the C library's business.
void AnswerThreadNames();

}  // namespace vgpud::driver
