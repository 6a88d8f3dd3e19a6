/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys and values after a run: the past ones and behind them the new ones, in a new
 * tensor, or in the past ones' own, of which then only the new rows are touched.
 */
#include "plugins/attention/job.cuh"

/* K or V, in words of several elements; rows: of each head that are to be written. */
struct present_job {
    struct attention_plan plan;
    const void *past, *fresh, *lengths;
    void *to;
    attention_view past_view, view, to_view;
    int64_t rows, words;
    bool in_place;
};

template <typename Word>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    present_kernel(const __grid_constant__ present_job job)
{
    const int64_t b = blockIdx.y / job.plan.kv_heads, h = blockIdx.y % job.plan.kv_heads;
    const attention_reach reach = attention_reach_at(&job.plan, job.lengths, b);
    const Word *past =
        (const Word *)job.past + b * job.past_view.batch + h * job.past_view.head;
    const Word *fresh = (const Word *)job.fresh + b * job.view.batch + h * job.view.head;
    Word *to = (Word *)job.to + b * job.to_view.batch + h * job.to_view.head;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
         i < job.rows * job.words; i += (int64_t)gridDim.x * CUDA_BLOCK) {
        const int64_t word = i % job.words;
        const int64_t row = i / job.words + (job.in_place ? reach.split : 0);
        const int64_t late = row - reach.split;
        if (late >= 0 && late < job.plan.fresh) {
            if (row < job.plan.keys)
                to[row * job.to_view.row + word] = fresh[late * job.view.row + word];
        } else if (!job.in_place) {
            to[row * job.to_view.row + word] = past[row * job.past_view.row + word];
        }
    }
}

/* In words of n elements, if all of the view lies at multiples of them. */
static bool widen(attention_view *v, const void *data, int64_t n, int64_t size)
{
    const bool fits = (uintptr_t)data % (n * size) == 0 && v->batch % n == 0 &&
                      v->head % n == 0 && v->row % n == 0;
    v->batch /= n;
    v->head /= n;
    v->row /= n;
    return fits;
}

template <typename Word>
static bool present_launch(present_job job, int64_t dim, int64_t size,
                           cudaStream_t stream)
{
    const int64_t n = (int64_t)sizeof(Word) / size;
    const bool fits = n > 0 && dim % n == 0 && widen(&job.to_view, job.to, n, size) &&
                      widen(&job.view, job.fresh, n, size) &&
                      (!job.past || widen(&job.past_view, job.past, n, size));
    if (!fits)
        return false;
    job.words = dim / n;
    const dim3 grid(min(layer_blocks(job.rows * job.words, CUDA_BLOCK), 1024u),
                    (unsigned)(job.plan.batch * job.plan.kv_heads));
    present_kernel<Word><<<grid, CUDA_BLOCK, 0, stream>>>(job);
    return true;
}

static void present_of(present_job job, int64_t dim, cudaStream_t stream)
{
    const int64_t size = job.view.dtype == STRATA_FP32 ? 4 : 2;
    job.in_place = job.past == job.to;
    job.rows = job.in_place ? job.plan.fresh : job.plan.keys;
    if (job.rows > 0 && !present_launch<uint4>(job, dim, size, stream) &&
        !present_launch<uint32_t>(job, dim, size, stream))
        present_launch<uint16_t>(job, dim, size, stream);
}

void attention_present(const attention_job *a, cudaStream_t stream)
{
    const struct attention_plan &p = a->plan;
    present_job k = {p,   a->past_k,   a->k, a->lengths, a->present_k, p.past_k,
                     p.k, p.present_k, 0,    0,          false};
    present_job v = {p,   a->past_v,   a->v, a->lengths, a->present_v, p.past_v,
                     p.v, p.present_v, 0,    0,          false};
    present_of(k, p.dim, stream);
    present_of(v, p.v_dim, stream);
}
