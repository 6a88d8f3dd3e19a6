/* SPDX-License-Identifier: Apache-2.0
 *
 * The bias of a product's rows in each of its columns: elements of any halves, copied.
 */
#include "plugins/common/cublaslt/bias.h"
#include "kernels/layer.cuh"

#define THREADS 256
#define MOST_Y 65535 /* blocks of a grid */

static __global__ void __launch_bounds__(THREADS)
    lay_bias(const cublaslt_bias b, uint16_t *__restrict__ d)
{
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (row >= b.rows)
        return;
    const uint16_t value = ((const uint16_t *)b.values)[row];
    for (int64_t i = blockIdx.y; i < b.columns * b.batch; i += gridDim.y)
        d[i / b.columns * b.step + i % b.columns * b.pitch + row] = value;
}

extern "C" int cublaslt_lay_bias(const strata_run *r, const struct cublaslt_bias *bias,
                                 void *d)
{
    const int64_t columns = bias->columns * bias->batch;
    const dim3 grid(layer_blocks(bias->rows, THREADS),
                    (unsigned)(columns < MOST_Y ? columns : MOST_Y));
    lay_bias<<<grid, THREADS, 0, layer_stream(r)>>>(*bias, (uint16_t *)d);
    return layer_launched(r, "bias of a product");
}
