/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels behind plugins/common/move/move.h. Each element is read and written once;
 * operations are index arithmetic, a multiplication a word and axis, so memory bounds
 * wide words.
 *   move    a thread writes packs of at most 16 bytes, each gathered from one word or
 *           several, all loads under way before the first store
 *   list    the same of many parts, whose blocks stand one behind the other
 *   turned  the input is contiguous along another axis than the output: tiles go through
 *           shared memory, so that both sides are read and written in rows
 */
#include "kernels/element.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/move/job.h"

#define THREADS 256
#define TILE 64 /* elements of a tile's side */

struct move_place {
    int64_t to, from;
    bool fill;
};

static __device__ inline int64_t channel_offset(const move_channels &c, int64_t i)
{
    const int64_t channel = c.begin + i * c.step;
    return (channel >> c.shift) * c.stride + (channel & ((INT64_C(1) << c.shift) - 1));
}

static __device__ inline void move_to(move_place *p, const move_work &w, int a,
                                      uint32_t i)
{
    const move_axis &axis = w.job.axis[a];
    p->to += axis.odd ? channel_offset(w.job.to_channels, i) : i * axis.to;
    if (axis.table) {
        const int64_t at = axis.table[i];
        p->fill |= at < 0;
        p->from += at >> w.widened;
    } else {
        p->from += axis.odd ? channel_offset(w.job.from_channels, i) : i * axis.from;
    }
}

/* Outer axes of pack `index`; what is left is the place on the last axis. */
static __device__ inline move_place locate(const move_work &w, uint32_t index,
                                           uint32_t *last)
{
    move_place p = {0, 0, false};
    *last = index;
    for (int a = w.job.axes - 1; a >= 0; a--) {
        const uint32_t n = (uint32_t)w.job.axis[a].n;
        const uint32_t rest =
            a > 0 ? (__umulhi(index, w.magic[a]) + index) >> w.shift[a] : 0;
        const uint32_t i = index - rest * n;
        if (a == w.job.axes - 1)
            *last = i;
        else
            move_to(&p, w, a, i);
        index = rest;
    }
    return p;
}

template <typename T>
static __device__ inline T fill_word(const move_job &job)
{
    union {
        uint32_t w[4];
        T x;
    } u = {{job.fill, job.fill_upper, job.fill, job.fill_upper}};
    return u.x;
}

template <typename T>
static __device__ inline T read_word(const move_work &w, const move_place &p)
{
    return p.fill || !w.job.from ? fill_word<T>(w.job) : ((const T *)w.job.from)[p.from];
}

template <typename T, int N, int FLIGHT>
static __global__ void __launch_bounds__(THREADS)
    move_kernel(const __grid_constant__ move_work w)
{
    wait_for_previous();
    launch_next();
    const int last_axis = w.job.axes - 1;
    const uint32_t start = blockIdx.x * (uint32_t)(THREADS * FLIGHT) + threadIdx.x;
    pack<T, N> x[FLIGHT];
    int64_t to[FLIGHT];
#pragma unroll
    for (int u = 0; u < FLIGHT; u++) {
        uint32_t last;
        const uint32_t index = min(start + u * THREADS, w.count - 1);
        const move_place row = locate(w, index, &last);
#pragma unroll
        for (int k = 0; k < N; k++) {
            move_place p = row;
            move_to(&p, w, last_axis, last * N + k);
            if (k == 0)
                to[u] = p.to;
            x[u].v[k] = read_word<T>(w, p);
        }
    }
#pragma unroll
    for (int u = 0; u < FLIGHT; u++)
        if (start + u * THREADS < w.count)
            *(pack<T, N> *)((T *)w.job.to + to[u]) = x[u];
}

template <typename T, int N, int FLIGHT>
static int launch(const move_work *w, cudaStream_t stream)
{
    const uint32_t blocks = (w->count + THREADS * FLIGHT - 1) / (THREADS * FLIGHT);
    launch_overlapped(move_kernel<T, N, FLIGHT>, blocks, THREADS, 0, stream, *w);
    return cudaGetLastError();
}

/* First row that fits. */
static const struct move_instance {
    int32_t word, pack;
    int (*launch)(const move_work *, cudaStream_t);
} instances[] = {
    {16, 1, launch<uint4, 1, 4>},    {8, 1, launch<uint2, 1, 4>},
    {8, 2, launch<uint2, 2, 2>},     {4, 1, launch<uint32_t, 1, 4>},
    {4, 2, launch<uint32_t, 2, 2>},  {4, 4, launch<uint32_t, 4, 2>},
    {2, 1, launch<uint16_t, 1, 4>},  {2, 2, launch<uint16_t, 2, 4>},
    {2, 4, launch<uint16_t, 4, 2>},  {2, 8, launch<uint16_t, 8, 1>},
    {1, 1, launch<uint8_t, 1, 4>},   {1, 2, launch<uint8_t, 2, 4>},
    {1, 4, launch<uint8_t, 4, 2>},   {1, 8, launch<uint8_t, 8, 1>},
    {1, 16, launch<uint8_t, 16, 1>},
};

extern "C" int move_start(const move_work *w, void *stream)
{
    for (const move_instance &i : instances)
        if (i.word == w->word && i.pack == w->pack)
            return i.launch(w, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}

/* ---- lists ----------------------------------------------------------------------- */

template <typename T, int N, int FLIGHT>
static __global__ void __launch_bounds__(THREADS)
    list_kernel(const __grid_constant__ move_list list)
{
    int part = 0;
    while (blockIdx.x >= list.run[part].end)
        part++;
    const move_run &r = list.run[part];
    const uint32_t block = blockIdx.x - (part > 0 ? list.run[part - 1].end : 0);
    const uint32_t start = block * (uint32_t)(THREADS * FLIGHT) + threadIdx.x;
    pack<T, N> x[FLIGHT];
    int64_t to[FLIGHT];
#pragma unroll
    for (int u = 0; u < FLIGHT; u++) {
        const uint32_t index = min(start + u * THREADS, r.count - 1);
        const uint32_t o = (__umulhi(index, r.magic) + index) >> r.shift;
        const int64_t i = (int64_t)(index - o * r.n) * N;
        const T *from = (const T *)r.from + o * r.from_step[0] + i * r.from_step[1];
        to[u] = o * r.to_step[0] + i * r.to_step[1];
#pragma unroll
        for (int k = 0; k < N; k++)
            x[u].v[k] = from[k * r.from_step[1]];
    }
#pragma unroll
    for (int u = 0; u < FLIGHT; u++)
        if (start + u * THREADS < r.count)
            *(pack<T, N> *)((T *)r.to + to[u]) = x[u];
}

template <typename T, int N, int FLIGHT>
static int launch_list(move_list *list, cudaStream_t stream)
{
    uint64_t blocks = 0;
    for (int k = 0; k < list->n; k++) {
        blocks += (list->run[k].count + THREADS * FLIGHT - 1) / (THREADS * FLIGHT);
        list->run[k].end = (uint32_t)blocks;
    }
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    list_kernel<T, N, FLIGHT><<<(unsigned)blocks, THREADS, 0, stream>>>(*list);
    return cudaGetLastError();
}

static const struct list_instance {
    int32_t word, pack;
    int (*launch)(move_list *, cudaStream_t);
} list_instances[] = {
    {16, 1, launch_list<uint4, 1, 4>},    {8, 1, launch_list<uint2, 1, 4>},
    {8, 2, launch_list<uint2, 2, 2>},     {4, 1, launch_list<uint32_t, 1, 4>},
    {4, 2, launch_list<uint32_t, 2, 2>},  {4, 4, launch_list<uint32_t, 4, 2>},
    {2, 1, launch_list<uint16_t, 1, 4>},  {2, 2, launch_list<uint16_t, 2, 4>},
    {2, 4, launch_list<uint16_t, 4, 2>},  {2, 8, launch_list<uint16_t, 8, 1>},
    {1, 1, launch_list<uint8_t, 1, 4>},   {1, 2, launch_list<uint8_t, 2, 4>},
    {1, 4, launch_list<uint8_t, 4, 2>},   {1, 8, launch_list<uint8_t, 8, 1>},
    {1, 16, launch_list<uint8_t, 16, 1>},
};

static_assert(sizeof(move_list) <= 4096, "kernel parameters");

extern "C" int move_start_list(move_list *list, void *stream)
{
    for (const list_instance &i : list_instances)
        if (i.word == list->word && i.pack == list->pack)
            return i.launch(list, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}

/* ---- turned ---------------------------------------------------------------------- */

/* Tiles of the turned axis and the last one, and the place of the other axes. */
struct turn {
    move_place at;
    uint32_t rows, columns; /* begin of the tile: turned axis, last axis */
};

static __device__ inline turn turn_of(const move_work &w, uint64_t block)
{
    turn t = {{0, 0, false}, 0, 0};
    for (int a = w.job.axes - 1; a >= 0; a--) {
        const bool tiled = a == w.turned || a == w.job.axes - 1;
        const uint32_t n = (uint32_t)w.job.axis[a].n;
        const uint32_t steps = tiled ? (n + TILE - 1) / TILE : n;
        const uint64_t rest = block >> 32 ? block / steps : (uint32_t)block / steps;
        const uint32_t i = (uint32_t)(block - rest * steps);
        if (a == w.turned)
            t.rows = i * TILE;
        else if (tiled)
            t.columns = i * TILE;
        else
            move_to(&t.at, w, a, i);
        block = rest;
    }
    return t;
}

/* rows: positions of the turned axis, contiguous in the input; columns: of the last axis,
 * contiguous in the output. A thread moves N elements in an access. The odd pitch keeps
 * columns of the tile on different banks. */
template <typename T, int N>
static __global__ void __launch_bounds__(THREADS)
    turned_kernel(const __grid_constant__ move_work w)
{
    wait_for_previous();
    launch_next();
    const int LANES = TILE / N, STEP = THREADS / LANES, EACH = TILE / STEP;
    __shared__ T tile[TILE][TILE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
    const turn t = turn_of(w, blockIdx.x);
    const move_axis &row = w.job.axis[w.turned], &column = w.job.axis[w.job.axes - 1];
    const int lane = threadIdx.x % LANES * N, first = threadIdx.x / LANES;
    const int rows = (int)min((int64_t)TILE, row.n - t.rows);
    const int columns = (int)min((int64_t)TILE, column.n - t.columns);
    const T *from = (const T *)w.job.from + t.at.from + t.rows + t.columns * column.from;
    T *to = (T *)w.job.to + t.at.to + t.rows * row.to + t.columns;
    pack<T, N> x[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int c = first + k * STEP;
#pragma unroll
        for (int i = 0; i < N; i++)
            x[k].v[i] = fill_word<T>(w.job);
        if (!t.at.fill && c < columns && lane < rows)
            x[k] = *(const pack<T, N> *)(from + c * column.from + lane);
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int i = 0; i < N; i++)
            tile[first + k * STEP][lane + i] = x[k].v[i];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int r = first + k * STEP;
#pragma unroll
        for (int i = 0; i < N; i++)
            x[k].v[i] = tile[lane + i][r];
        if (r < rows && lane < columns)
            *(pack<T, N> *)(to + r * row.to + lane) = x[k];
    }
}

template <typename T, int N>
static int launch_turned(const move_work *w, unsigned blocks, cudaStream_t stream)
{
    launch_overlapped(turned_kernel<T, N>, blocks, THREADS, 0, stream, *w);
    return cudaGetLastError();
}

static const struct turned_instance {
    int32_t word, pack;
    int (*launch)(const move_work *, unsigned blocks, cudaStream_t);
} turned_instances[] = {
    {8, 1, launch_turned<uint2, 1>},    {8, 2, launch_turned<uint2, 2>},
    {4, 1, launch_turned<uint32_t, 1>}, {4, 2, launch_turned<uint32_t, 2>},
    {4, 4, launch_turned<uint32_t, 4>}, {2, 1, launch_turned<uint16_t, 1>},
    {2, 2, launch_turned<uint16_t, 2>}, {2, 4, launch_turned<uint16_t, 4>},
    {1, 1, launch_turned<uint8_t, 1>},  {1, 2, launch_turned<uint8_t, 2>},
    {1, 4, launch_turned<uint8_t, 4>},
};

extern "C" int move_start_turned(const move_work *w, void *stream)
{
    uint64_t blocks = 1;
    for (int a = 0; a < w->job.axes; a++) {
        const bool tiled = a == w->turned || a == w->job.axes - 1;
        const uint64_t n = (uint64_t)w->job.axis[a].n;
        blocks *= tiled ? (n + TILE - 1) / TILE : n;
    }
    for (const turned_instance &i : turned_instances)
        if (i.word == w->word && i.pack == w->pack)
            return i.launch(w, (unsigned)blocks, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}
