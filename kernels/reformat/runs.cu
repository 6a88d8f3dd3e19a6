/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements in the same order on both sides: convert rows of them. Moves each byte once
 * and coalesced on both sides, so memory bounds it; a thread has four accesses in flight.
 */
#include "kernels/reformat/common.cuh"
#include "kernels/overlap.cuh"

#define THREADS 256
#define FLIGHT 4 /* pieces of a thread, loaded before the first is stored */

/* One run may be longer than 32 bits hold, so here steps are 64-bit. Past the end the
 * last piece is read again, so that all loads go out at once. */
template <typename To, typename From, int N>
static __global__ void __launch_bounds__(THREADS)
    runs_kernel(const __grid_constant__ reformat_runs j)
{
    wait_for_previous();
    launch_next();
    const uint64_t start = (uint64_t)blockIdx.x * (THREADS * FLIGHT);
    const uint64_t steps = j.n_rows * j.length;
    const uint64_t row = j.n_rows == 1 ? 0 : start / j.length;
    const uint64_t rest = start - row * j.length;
    const uint32_t last = (uint32_t)min((uint64_t)(THREADS * FLIGHT), steps - start) - 1;
    pack<From, N> x[FLIGHT];
    To *to[FLIGHT];
#pragma unroll
    for (int u = 0; u < FLIGHT; u++) {
        uint64_t at = rest + min(u * THREADS + threadIdx.x, last);
        place p = {0, 0};
        if (j.n_rows > 1) {
            const uint64_t rows = at < j.length ? 0 : at / j.length;
            at -= rows * j.length;
            p = loops_at(j.rows, row + rows);
        }
        to[u] = (To *)j.dst + p.dst + at * N;
        x[u] = load_once<From, N>((const From *)j.src + p.src + at * N);
    }
#pragma unroll
    for (int u = 0; u < FLIGHT; u++)
        if (u * THREADS + threadIdx.x <= last)
            store_once<To, N>(to[u], convert_pack<To, From, N>(x[u]));
}

template <typename To, typename From>
static void launch(const reformat_runs *j, cudaStream_t s)
{
    const int wide = 16 / (sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));
    const uint64_t steps = j->n_rows * j->length;
    const unsigned blocks =
        (unsigned)((steps + THREADS * FLIGHT - 1) / (THREADS * FLIGHT));
    if (j->piece == 1)
        launch_overlapped(runs_kernel<To, From, 1>, blocks, THREADS, 0, s, *j);
    else
        launch_overlapped(runs_kernel<To, From, wide>, blocks, THREADS, 0, s, *j);
}

extern "C" int reformat_launch_runs(const struct reformat_runs *j, int to, int from,
                                    void *stream)
{
#define LAUNCH(TO, To, FROM, From)                                                       \
    if (to == (TO) && from == (FROM))                                                    \
        launch<To, From>(j, (cudaStream_t)stream);
    REFORMAT_TYPED(LAUNCH)
    LAUNCH(STRATA_FP64, double, STRATA_FP64, double) /* or 8 bytes of any dtype */
#undef LAUNCH
    return cudaPeekAtLastError();
}
