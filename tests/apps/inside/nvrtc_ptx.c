// SPDX-License-Identifier: Apache-2.0
// To be preloaded: programs that ask NVRTC for machine code get PTX instead, which the driver loads as well.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef void* Program;

// Python modules keep the libraries that they load to themselves, so that RTLD_NEXT does not see them.
static void* Real(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  void* library = found == NULL ? dlopen("libnvrtc.so.12", RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (library != NULL) found = dlsym(library, name);
  if (found == NULL) abort();
  return found;
}

// --gpu-architecture=sm_75 is machine code for 7.5, compute_75 is PTX.
Result nvrtcCompileProgram(Program program, int count, const char* const* options) {
  static const char kMachine[] = "sm_", kVirtual[] = "compute_";
  char** mine = calloc((size_t)count + 1, sizeof *mine);
  for (int i = 0; i < count; ++i) {
    const char* at = strstr(options[i], kMachine);
    const size_t room = strlen(options[i]) + sizeof kVirtual;
    mine[i] = malloc(room);
    if (at != NULL && (at == options[i] || at[-1] == '=')) {
      const size_t before = (size_t)(at - options[i]);
      memcpy(mine[i], options[i], before);
      strcpy(mine[i] + before, kVirtual);
      strcat(mine[i], at + sizeof kMachine - 1);
    } else {
      strcpy(mine[i], options[i]);
    }
  }
  Result (*real)(Program, int, const char* const*) = Real("nvrtcCompileProgram");
  const Result result = real(program, count, (const char* const*)mine);
  for (int i = 0; i < count; ++i) free(mine[i]);
  free(mine);
  return result;
}

Result nvrtcGetCUBINSize(Program program, size_t* size) {
  Result (*real)(Program, size_t*) = Real("nvrtcGetPTXSize");
  return real(program, size);
}

Result nvrtcGetCUBIN(Program program, char* code) {
  Result (*real)(Program, char*) = Real("nvrtcGetPTX");
  return real(program, code);
}
