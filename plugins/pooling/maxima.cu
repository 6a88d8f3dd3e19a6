/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima of bytes: a thread makes sixteen channels of several rows of outputs, so that
 * rows of the input under two windows are read once. Outside the input it reads the
 * nearest element inside, which the window has too: a maximum does not change by that.
 */
#include "plugins/pooling/maxima.cuh"

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/window.cuh"

enum { BYTES = 16, ROWS = 4 };
enum { MANY = 1 << 17 }; /* threads from which each makes ROWS */

struct maxima_job {
    window_tensor x, y;
    divisor pieces, width, height; /* of an output; height in threads' rows */
    int32_t in_h, in_w, out_h, top, left;
    uint32_t threads;
};

template <bool Signed>
static __device__ inline uint4 larger_four(uint4 a, uint4 b)
{
    if (Signed)
        return make_uint4(__vmaxs4(a.x, b.x), __vmaxs4(a.y, b.y), __vmaxs4(a.z, b.z),
                          __vmaxs4(a.w, b.w));
    return make_uint4(__vmaxu4(a.x, b.x), __vmaxu4(a.y, b.y), __vmaxu4(a.z, b.z),
                      __vmaxu4(a.w, b.w));
}

static __device__ inline int64_t nearest_inside(int32_t at, int32_t n)
{
    return min(max(at, 0), n - 1);
}

/* Windows of K x K that are S apart. */
template <bool Signed, int K, int S, int Rows>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    maxima_kernel(const __grid_constant__ maxima_job j)
{
    uint32_t i = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i >= j.threads)
        return;
    const uint32_t pixel = divide_by(i, j.pieces),
                   channel = (i - pixel * j.pieces.d) * BYTES;
    const uint32_t row = divide_by(pixel, j.width), w = pixel - row * j.width.d;
    const uint32_t image = divide_by(row, j.height);
    const int32_t h = (int32_t)(row - image * j.height.d) * Rows;
    const uint8_t *x =
        (const uint8_t *)j.x.data + image * j.x.image + channel_offset(j.x, channel);
    int64_t column[K];
    uint4 most[Rows];
#pragma unroll
    for (int k = 0; k < K; k++)
        column[k] = nearest_inside((int32_t)w * S - j.left + k, j.in_w) * j.x.step[2];
    launch_next();
    wait_for_previous();
#pragma unroll
    for (int line = 0; line < (Rows - 1) * S + K; line++) {
        const uint8_t *from =
            x + nearest_inside(h * S - j.top + line, j.in_h) * j.x.step[1];
        uint4 v = *(const uint4 *)(from + column[0]);
#pragma unroll
        for (int k = 1; k < K; k++)
            v = larger_four<Signed>(v, *(const uint4 *)(from + column[k]));
#pragma unroll
        for (int r = 0; r < Rows; r++)
            if (line == r * S)
                most[r] = v;
            else if (line > r * S && line < r * S + K)
                most[r] = larger_four<Signed>(most[r], v);
    }
    uint8_t *y = (uint8_t *)j.y.data + image * j.y.image + channel_offset(j.y, channel) +
                 w * j.y.step[2];
#pragma unroll
    for (int r = 0; r < Rows; r++)
        if (h + r < j.out_h)
            *(uint4 *)(y + (h + r) * j.y.step[1]) = most[r];
}

typedef void maxima_kernel_of(maxima_job);

struct maxima_rule {
    int64_t kernel, stride;
    maxima_kernel_of *kernels[2][2]; /* by whether bytes are signed and rows are many */
};

static const maxima_rule rules[] = {
#define RULE(K, S)                                                                       \
    {                                                                                    \
        K, S,                                                                            \
        {                                                                                \
            {maxima_kernel<false, K, S, 1>, maxima_kernel<false, K, S, ROWS>},           \
            {                                                                            \
                maxima_kernel<true, K, S, 1>, maxima_kernel<true, K, S, ROWS>            \
            }                                                                            \
        }                                                                                \
    }
    RULE(2, 2),
    RULE(3, 1),
    RULE(3, 2),
};

/* ---- on the host ------------------------------------------------------------------- */

static const maxima_rule *find_rule(const struct window *w)
{
    const bool plane = w->dims == 2 && w->kernel[1] == w->kernel[2] &&
                       w->stride[1] == w->stride[2] && w->dilation[1] == 1 &&
                       w->dilation[2] == 1;
    for (const maxima_rule &rule : rules)
        if (plane && w->kernel[1] == rule.kernel && w->stride[1] == rule.stride)
            return &rule;
    return NULL;
}

int maxima_setup(const strata_node *n, void *state)
{
    maxima *m = (maxima *)state;
    const strata_pooling *p = (const strata_pooling *)n->params;
    int status = window_of_pooling(&m->w, p, &n->in[0], n->host, n->err);
    m->rule = status == STRATA_OK ? find_rule(&m->w) : NULL;
    return status;
}

int maxima_accept(const strata_node *n)
{
    const strata_pooling *p = (const strata_pooling *)n->params;
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    maxima m;
    if (p->kind != STRATA_POOL_MAX || p->indices)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "of bytes it takes maxima alone, without their indices");
    int status = maxima_setup(n, &m);
    if (status != STRATA_OK)
        return status;
    if (!m.rule || window_has_empty(&m.w))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "it has windows of 2x2/2, 3x3 and 3x3/2 that see the input");
    if (y->vector % BYTES != 0 && y->dims[1] % BYTES != 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "channels are no whole pieces of 16 bytes");
    if (x->size >= INT32_MAX || y->size >= INT32_MAX || x->count == 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a tensor is empty, or of 2^31 bytes or more");
    return STRATA_OK;
}

int maxima_run(const strata_run *r)
{
    const maxima *m = (const maxima *)r->state;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const bool many = y->size / BYTES >= MANY;
    const int64_t rows = many ? ROWS : 1;
    maxima_job j = {};
    if ((uintptr_t)x->data % BYTES || (uintptr_t)y->data % BYTES)
        return STRATA_FAIL(r, STRATA_EINTERNAL,
                           "a tensor begins at no multiple of %d bytes", (int)BYTES);
    j.x = window_tensor_of(x);
    j.y = window_tensor_of(y);
    const int64_t stored = (y->dims[1] + j.y.mask) & ~(int64_t)j.y.mask;
    const int64_t height = (m->w.out[1] + rows - 1) / rows;
    j.pieces = divisor_of(stored / BYTES);
    j.width = divisor_of(m->w.out[2]);
    j.height = divisor_of(height);
    j.in_h = (int32_t)m->w.in[1];
    j.in_w = (int32_t)m->w.in[2];
    j.out_h = (int32_t)m->w.out[1];
    j.top = (int32_t)m->w.begin[1];
    j.left = (int32_t)m->w.begin[2];
    j.threads = (uint32_t)(y->dims[0] * height * m->w.out[2] * j.pieces.d);
    if (j.threads == 0)
        return STRATA_OK;
    launch_overlapped(m->rule->kernels[x->dtype == STRATA_INT8][many],
                      dim3(layer_blocks(j.threads, CUDA_BLOCK)), dim3(CUDA_BLOCK), 0,
                      layer_stream(r), j);
    return layer_launched(r, "pooling");
}
