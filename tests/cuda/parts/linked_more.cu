__device__ int table[4] = {100, 110, 120, 130};
static __device__ __noinline__ int Step(int value) { return 2 * value; }
__device__ __noinline__ int Twice(int value) { return Step(value); }
