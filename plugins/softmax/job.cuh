/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of Softmax share: a launch's job, and sums that can be joined.
 */
#ifndef PLUGINS_SOFTMAX_JOB_CUH
#define PLUGINS_SOFTMAX_JOB_CUH

#include "kernels/walk.cuh"

/* The part of a line a thread has seen: largest element, sum of exp(x - largest). */
struct tally {
    float largest, sum;
};

struct softmax_job {
    void *y;
    const void *x;
    walk<1> lines; /* over the other dims; operand 0 is the tensor */
    int64_t n_lines;
    int64_t length, padded; /* of a line, in elements; with pad lanes */
    int64_t step;           /* from one vector of the axis to the next */
    int32_t shift;          /* log2 of the vector's width, 0 without vectors */
    bool log;
};

static __device__ inline void tally_add(tally &t, float x)
{
    if (x > t.largest) {
        t.sum = t.sum * __expf(t.largest - x) + 1;
        t.largest = x;
    } else if (x != -INFINITY) { /* which adds nothing, and inf - inf is NaN */
        t.sum += __expf(x - t.largest);
    }
}

static __device__ inline tally tally_join(const tally &a, const tally &b)
{
    const float largest = fmaxf(a.largest, b.largest);
    if (largest == -INFINITY)
        return {largest, a.sum + b.sum};
    return {largest,
            a.sum * __expf(a.largest - largest) + b.sum * __expf(b.largest - largest)};
}

/* What the sum does to every element, once per line. */
static __device__ inline void tally_close(tally &t, bool log)
{
    t.sum = log ? logf(t.sum) : 1 / t.sum;
}

static __device__ inline float softmax_of(float x, const tally &t, bool log)
{
    return log ? x - t.largest - t.sum : __expf(x - t.largest) * t.sum;
}

/* By kernels that are loading the next lines while they compute, plugins/softmax/ring.cu;
 * false where lines do not fit them. */
bool softmax_ring(const softmax_job &job, int32_t dtype, cudaStream_t stream);

/* Lines of whole packs, one behind the other, that registers hold,
 * plugins/softmax/packed.cu; false where they do not fit. */
bool softmax_packed(const softmax_job &job, int32_t dtype, cudaStream_t stream);

/* As softmax_ring, of strided lines, plugins/softmax/columns.cu. */
bool softmax_columns(const softmax_job &job, int32_t dtype, cudaStream_t stream);

#endif /* PLUGINS_SOFTMAX_JOB_CUH */
