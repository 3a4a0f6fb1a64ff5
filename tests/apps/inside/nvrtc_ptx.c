// SPDX-License-Identifier: Apache-2.0
// Stands before NVRTC under its name: programs that ask for machine code get PTX instead, which the driver loads as well.
// A compute capability that this NVRTC does not know becomes the highest that it knows. Everything else is the real
// library's, which this one is linked with (applib/stand_ins.py).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
typedef void* Program;

static void* Real(const char* name) {
  void* library = dlopen("libnvrtc-real.so", RTLD_NOW);
  void* found = library == NULL ? NULL : dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "nvrtc_ptx: no %s: %s\n", name, dlerror());
    abort();
  }
  return found;
}

static int Highest(void) {
  Result (*count_of)(int*) = Real("nvrtcGetNumSupportedArchs");
  Result (*list_of)(int*) = Real("nvrtcGetSupportedArchs");
  int count = 0, highest = 0;
  if (count_of(&count) != 0 || count <= 0) return 0;
  int* list = calloc((size_t)count, sizeof *list);
  if (list_of(list) == 0) {
    for (int i = 0; i < count; ++i) highest = list[i] > highest ? list[i] : highest;
  }
  free(list);
  return highest;
}

// The number behind "=sm_" or "=compute_" in an option, or behind the word itself if it comes as an option of its own.
static int Architecture(const char* option) {
  const char* at = strchr(option, '=');
  at = at == NULL ? option : at + 1;
  int number = 0;
  return sscanf(at, "sm_%d", &number) == 1 || sscanf(at, "compute_%d", &number) == 1 ? number : 0;
}

Result nvrtcCompileProgram(Program program, int count, const char* const* options) {
  char** mine = calloc((size_t)count + 1, sizeof *mine);
  for (int i = 0; i < count; ++i) {
    const char* equals = strchr(options[i], '=');
    const int before = equals == NULL ? 0 : (int)(equals + 1 - options[i]);
    int number = Architecture(options[i]);
    if (number == 0) {
      mine[i] = strdup(options[i]);
      continue;
    }
    const int highest = Highest();
    if (highest != 0 && number > highest) number = highest;
    if (asprintf(&mine[i], "%.*scompute_%d", before, options[i], number) < 0) abort();
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
