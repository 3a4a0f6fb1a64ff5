// The kernels of tests/cuda in OpenCL C: the same work per work-item, the same groups.
kernel void vectoradd(global const float* a, global const float* b, global float* c, uint n) {
  const uint i = get_global_id(0);
  if (i < n) c[i] = a[i] + b[i];
}

#define TILE 16
kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul(global const float* a, global const float* b,
                                                                        global float* c, uint n, uint k) {
  local float tile_a[TILE][TILE];
  local float tile_b[TILE][TILE];
  const uint x = get_local_id(0), y = get_local_id(1);
  const uint row = get_group_id(1) * TILE + y, column = get_group_id(0) * TILE + x;
  float sum = 0.0f;
  for (uint t = 0; t < k; t += TILE) {
    tile_a[y][x] = a[row * k + t + x];
    tile_b[y][x] = b[(t + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = 0; i < TILE; ++i) sum = fma(tile_a[y][i], tile_b[i][x], sum);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}

// Sum, minimum and maximum of integers and sum of floats. There are no warps, so a tree in local memory takes the place
// of the shuffles; the float sums of the groups are put together by their last one, as there is no atomic float addition.
#define GROUP 256
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void reduction(global const int* values,
                                                                         global const float* floats, uint n,
                                                                         global uint* totals, global float* parts) {
  local long sums[GROUP];
  local float float_sums[GROUP];
  local int minima[GROUP];
  local int maxima[GROUP];
  const uint t = get_local_id(0);
  long sum = 0;
  float float_sum = 0.0f;
  int minimum = INT_MAX, maximum = INT_MIN;
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) {
    sum += values[i];
    float_sum += floats[i];
    minimum = min(minimum, values[i]);
    maximum = max(maximum, values[i]);
  }
  sums[t] = sum;
  float_sums[t] = float_sum;
  minima[t] = minimum;
  maxima[t] = maximum;
  for (uint step = GROUP / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < step) {
      sums[t] += sums[t + step];
      float_sums[t] += float_sums[t + step];
      minima[t] = min(minima[t], minima[t + step]);
      maxima[t] = max(maxima[t], maxima[t + step]);
    }
  }
  if (t == 0) {
    atomic_min((global int*)totals + 3, minima[0]);
    atomic_max((global int*)totals + 4, maxima[0]);
    // Wraps as the low word of the sum does.
    atomic_add(totals, (uint)sums[0]);
    parts[get_group_id(0)] = float_sums[0];
    mem_fence(CLK_GLOBAL_MEM_FENCE);
    if (atomic_inc(totals + 5) == get_num_groups(0) - 1) {
      float all = 0.0f;
      for (uint g = 0; g < get_num_groups(0); ++g) all += ((volatile global float*)parts)[g];
      ((global float*)totals)[2] = all;
    }
  }
}

kernel void collatz(global uint* steps, uint n) {
  const uint i = get_global_id(0);
  if (i >= n) return;
  ulong x = i + 1;
  uint count = 0;
  while (x != 1) {
    x = x % 2 == 0 ? x / 2 : 3 * x + 1;
    ++count;
  }
  steps[i] = count;
}
