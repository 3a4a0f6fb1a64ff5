// SPDX-License-Identifier: Apache-2.0
// The programs of tests/cuda that the launcher can run: the same kernels, checks and output as the CUDA programs.
// Each returns its exit status.
#pragma once

int RunVectorAdd(int argc, char** argv);
int RunMatMul(int argc, char** argv);
int RunEndless(int argc, char** argv);
int RunLongBlocks(int argc, char** argv);
int RunMeter(int argc, char** argv);
int RunCuts(int argc, char** argv);
