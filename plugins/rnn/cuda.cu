/* SPDX-License-Identifier: Apache-2.0
 *
 * RNN on CUDA, any size and any option: the input products of all steps as one, then a
 * kernel a step, whose warps own a hidden unit each. All sums and states are FP32.
 */
#include "kernels/layer.cuh"

#define CELL_REAL float
#define CELL_FUNCTION static __device__ inline
CELL_FUNCTION void cell_activate(const strata_activation *f, float *x, int64_t n)
{
    const activation_args a = {f->kind, (float)f->alpha, (float)f->beta};
    for (int64_t i = 0; i < n; i++)
        x[i] = activate(x[i], a);
}
#include "plugins/rnn/cell.h"

#define WARPS 8      /* of a block that makes a step */
#define ROWS 8       /* of the batch that a warp takes at a time */
#define TILE 64      /* a side, of the input product */
#define DEPTH 16     /* of the tiles in shared memory */
#define MOST_Y 65535 /* blocks of a grid's y */

/* One layer. Distances are in elements. */
struct rnn_job {
    rnn_rule rule[2];
    const void *x;  /* T x B x depth */
    const float *w; /* D x G*H x depth; NULL: every gate has the input as it is */
    const float *r; /* D x G*H x H */
    const float *bias, *peephole; /* D x 2*G*H, D x 3*H; NULL: absent */
    float *sums;                  /* T*B x D x G*H */
    float *h[2], *c;              /* D x B x H */
    float *reset;
    void *y;
    const void *h0, *c0; /* or NULL */
    void *hn, *cn;       /* cn: NULL but of lstm */
    const int32_t *lengths;
    int64_t steps, batch, depth, hidden;
    int64_t x_step, x_row, y_step, y_row, y_direction;
    int32_t gates, directions, backward, op, reset_after, late;
};

static __device__ inline int64_t length_of(const rnn_job &j, int64_t row)
{
    const int64_t n = j.lengths ? j.lengths[row] : j.steps;
    return n < 0 ? 0 : n < j.steps ? n : j.steps;
}

/* ---- input products ------------------------------------------------------------------
 */

/* Behind a sum: the biases, but that which gru's reset is applied to. */
static __device__ inline float bias_of(const rnn_job &j, int64_t direction, int64_t i)
{
    const int64_t rows = j.gates * j.hidden;
    if (!j.bias)
        return 0;
    const float *b = j.bias + direction * 2 * rows;
    const bool apart =
        j.op == STRATA_RNN_GRU && j.reset_after && i >= RNN_CANDIDATE * j.hidden;
    return apart ? b[i] : b[i] + b[rows + i];
}

/* sums[row][n] of 64 x 64, each thread 4 x 4. */
template <typename X>
static __global__ void __launch_bounds__(256)
    rnn_inputs(const __grid_constant__ rnn_job j)
{
    __shared__ float a[DEPTH][TILE + 4], b[DEPTH][TILE + 4];
    const int64_t rows = j.steps * j.batch, columns = j.directions * j.gates * j.hidden;
    const int64_t column = (int64_t)blockIdx.x * TILE;
    const int at = threadIdx.x % 16 * 4, down = threadIdx.x / 16 * 4;
    for (int64_t row = (int64_t)blockIdx.y * TILE; row < rows;
         row += (int64_t)gridDim.y * TILE) {
        float sum[4][4] = {};
        for (int64_t k = 0; k < j.depth; k += DEPTH) {
            for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
                const int64_t m = row + i / DEPTH, n = column + i / DEPTH,
                              d = k + i % DEPTH;
                a[i % DEPTH][i / DEPTH] =
                    m < rows && d < j.depth
                        ? to_float(((const X *)j.x)[m / j.batch * j.x_step +
                                                    m % j.batch * j.x_row + d])
                        : 0;
                b[i % DEPTH][i / DEPTH] =
                    n < columns && d < j.depth ? j.w[n * j.depth + d] : 0;
            }
            __syncthreads();
            for (int d = 0; d < DEPTH; d++)
                for (int m = 0; m < 4; m++)
                    for (int n = 0; n < 4; n++)
                        sum[m][n] = fmaf(a[d][down + m], b[d][at + n], sum[m][n]);
            __syncthreads();
        }
        for (int m = 0; m < 4; m++)
            for (int n = 0; n < 4; n++) {
                const int64_t to = row + down + m, i = column + at + n;
                const int64_t each = j.gates * j.hidden;
                if (to < rows && i < columns)
                    j.sums[to * columns + i] = sum[m][n] + bias_of(j, i / each, i % each);
            }
    }
}

template <typename X>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    rnn_skip(const __grid_constant__ rnn_job j)
{
    const int64_t each = j.gates * j.hidden, columns = j.directions * each;
    const int64_t n = j.steps * j.batch * columns;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * CUDA_BLOCK) {
        const int64_t row = i / columns, column = i % columns;
        const int64_t from =
            row / j.batch * j.x_step + row % j.batch * j.x_row + column % j.hidden;
        j.sums[i] =
            to_float(((const X *)j.x)[from]) + bias_of(j, column / each, column % each);
    }
}

/* ---- steps ---------------------------------------------------------------------------
 */

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    rnn_begin(const __grid_constant__ rnn_job j)
{
    const int64_t n = j.directions * j.batch * j.hidden;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * CUDA_BLOCK) {
        j.h[0][i] = j.h0 ? to_float(((const T *)j.h0)[i]) : 0;
        j.c[i] = j.c0 ? to_float(((const T *)j.c0)[i]) : 0;
    }
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    rnn_end(const __grid_constant__ rnn_job j)
{
    const int64_t n = j.directions * j.batch * j.hidden;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * CUDA_BLOCK) {
        from_float((T *)j.hn + i, j.h[j.steps % 2][i]);
        if (j.cn)
            from_float((T *)j.cn + i, j.c[i]);
    }
}

/* Products of G rows of R, of one unit, with the h of some rows; lane b has row b's. */
template <int G>
static __device__ inline void recur(const rnn_job &j, const float *h, const float *r,
                                    int64_t row, float *out)
{
    const int lane = threadIdx.x % 32;
    float sum[G][ROWS] = {};
    for (int64_t k = lane; k < j.hidden; k += 32) {
        float w[G];
#pragma unroll
        for (int g = 0; g < G; g++)
            w[g] = r[(int64_t)g * j.hidden * j.hidden + k];
#pragma unroll
        for (int b = 0; b < ROWS; b++) {
            const float x = row + b < j.batch ? h[(row + b) * j.hidden + k] : 0;
#pragma unroll
            for (int g = 0; g < G; g++)
                sum[g][b] = fmaf(w[g], x, sum[g][b]);
        }
    }
#pragma unroll
    for (int g = 0; g < G; g++)
#pragma unroll
        for (int b = 0; b < ROWS; b++) {
            float x = sum[g][b];
#pragma unroll
            for (int d = 16; d > 0; d /= 2)
                x += __shfl_xor_sync(~0u, x, d);
            if (lane == b)
                out[g] = x;
        }
}

/* Where a unit of a row is in tensors of states, and in those of sums at a time. */
struct rnn_place {
    int64_t state, sums, unit, time, step;
    int direction;
};

static __device__ inline void give(const rnn_job &j, const rnn_place &at, float h, int i)
{
    j.h[(i + 1) % 2][at.state] = h;
}

template <typename T>
static __device__ inline void put(const rnn_job &j, const rnn_place &at, int64_t row,
                                  int64_t time, float h)
{
    T *y = (T *)j.y + time * j.y_step + row * j.y_row + at.direction * j.y_direction;
    from_float(y + at.unit, h);
}

/* GATES is those of the op; `late` the candidate of gru alone, behind the reset. */
template <typename T, int GATES>
static __device__ inline void finish_step(const rnn_job &j, const rnn_place &at,
                                          int64_t row, int i, float *r)
{
    const rnn_rule *rule = &j.rule[at.direction];
    const float old = j.h[i % 2][at.state];
    float *sums = j.sums + at.sums, z[4], h, p[3] = {};
    const bool before = GATES == 3 && !j.reset_after;
    for (int g = 0; g < GATES; g++)
        z[g] = sums[g * j.hidden];
    if (j.late) {
        z[RNN_CANDIDATE] += r[0];
        cell_gru(rule, z, 1, NULL, &old, &h, 1);
    } else if (GATES == 3) {
        z[RNN_UPDATE] += r[RNN_UPDATE];
        z[RNN_RESET] += r[RNN_RESET];
        cell_gru_gates(rule, z, 1, 1);
        if (before) {
            sums[RNN_UPDATE * j.hidden] = z[RNN_UPDATE];
            j.reset[at.state] = z[RNN_RESET] * old;
            return;
        }
        float after = r[RNN_CANDIDATE];
        if (j.bias)
            after += j.bias[(at.direction * 2 + 1) * GATES * j.hidden +
                            RNN_CANDIDATE * j.hidden + at.unit];
        cell_gru(rule, z, 1, &after, &old, &h, 1);
    } else if (GATES == 4) {
        float c = j.c[at.state];
        for (int g = 0; g < 4; g++)
            z[g] += r[g];
        for (int g = 0; g < 3 && j.peephole; g++)
            p[g] = j.peephole[(at.direction * 3 + g) * j.hidden + at.unit];
        cell_lstm(rule, z, 1, j.peephole ? p : NULL, 1, &c, &h, 1);
        j.c[at.state] = c;
    } else {
        z[0] += r[0];
        cell_simple(rule, z, &h, 1);
    }
    give(j, at, h, i);
    put<T>(j, at, row, at.time, h);
}

/* Step i, or the half of it that `late` says. */
template <typename T, int GATES>
static __global__ void __launch_bounds__(32 * WARPS)
    rnn_step(const __grid_constant__ rnn_job j, int i)
{
    const int64_t unit = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32, direction = blockIdx.z;
    const int64_t each = GATES * j.hidden, first = direction * j.batch * j.hidden;
    if (unit >= j.hidden)
        return;
    const float *r = j.r + (direction * each + unit) * j.hidden;
    for (int64_t row = (int64_t)blockIdx.y * ROWS; row < j.batch;
         row += (int64_t)gridDim.y * ROWS) {
        float sum[4] = {};
        if (GATES == 3 && j.late)
            recur<1>(j, j.reset + first, r + RNN_CANDIDATE * j.hidden * j.hidden, row,
                     sum);
        else
            recur<GATES>(j, j.h[i % 2] + first, r, row, sum);
        const int64_t mine = row + lane;
        if (lane >= ROWS || mine >= j.batch)
            continue;
        const int64_t length = length_of(j, mine);
        const int64_t time = j.backward || direction ? length - 1 - i : i;
        rnn_place at = {first + mine * j.hidden + unit, 0, unit, time, i, direction};
        if (i < length) {
            at.sums = ((time * j.batch + mine) * j.directions + direction) * each + unit;
            finish_step<T, GATES>(j, at, mine, i, sum);
        } else if (!(GATES == 3 && !j.reset_after && !j.late)) {
            give(j, at, j.h[i % 2][at.state], i);
            put<T>(j, at, mine, i, 0);
        }
    }
}

/* ---- layers --------------------------------------------------------------------------
 */

/* Rows of the workspace. */
struct rnn_room {
    float *sums, *between[2], *h[2], *c, *reset;
};

static bool take(size_t *used, int64_t n, int64_t width, char *base, float **at)
{
    int64_t bytes;
    if (__builtin_mul_overflow(n, width, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)sizeof(float), &bytes) ||
        __builtin_add_overflow(bytes, (int64_t)255, &bytes))
        return false;
    *at = base ? (float *)(base + *used) : NULL;
    return !__builtin_add_overflow(*used, (size_t)bytes & ~(size_t)255, used);
}

static size_t furnish(const rnn_plan &p, char *base, rnn_room *room)
{
    const int64_t rows = p.steps * p.batch, wide = p.directions * p.hidden;
    size_t used = 0;
    if (!take(&used, rows, wide * p.gates, base, &room->sums) ||
        !take(&used, p.batch, wide, base, &room->h[0]) ||
        !take(&used, p.batch, wide, base, &room->h[1]) ||
        !take(&used, p.batch, wide, base, &room->c) ||
        !take(&used, p.batch, wide, base, &room->reset))
        return SIZE_MAX;
    for (int i = 0; i < 2; i++)
        if (!take(&used, rows, p.layers > 1 + i ? wide : 0, base, &room->between[i]))
            return SIZE_MAX;
    return used;
}

static size_t workspace(const strata_node *n)
{
    rnn_room room = {};
    return furnish(rnn_plan_of((const strata_rnn *)n->params, n->in, n->weight), NULL,
                   &room);
}

static const float *weight_of(const strata_run *r, int i, int64_t from)
{
    return r->weight[i].rank > 0 ? (const float *)r->weight[i].data + from : NULL;
}

static rnn_job job_of(const strata_run *r, const rnn_plan &p, const rnn_room &room,
                      int layer)
{
    const bool lstm = p.op == STRATA_RNN_LSTM, last = layer + 1 == p.layers;
    const int64_t wide = p.directions * p.hidden, rows = p.gates * p.hidden;
    const int64_t line = layer * p.directions, states = line * p.batch * p.hidden;
    const int64_t size = r->in[RNN_X].dtype == STRATA_FP32 ? 4 : 2;
    const char *h0 = (const char *)rnn_input(r->n_in, r->in, RNN_H0);
    const char *c0 = (const char *)rnn_input(r->n_in, r->in, RNN_C0);
    rnn_job j = {};
    for (int d = 0; d < p.directions; d++)
        j.rule[d] = p.rule[d];
    j.x = layer ? room.between[(layer - 1) % 2] : r->in[RNN_X].data;
    j.depth = rnn_depth(&p, layer);
    if (rnn_multiplies(&p, layer))
        j.w = layer ? weight_of(r, RNN_U, (line - p.directions) * rows * j.depth)
                    : weight_of(r, RNN_W, 0);
    j.r = weight_of(r, RNN_R, line * rows * p.hidden);
    j.bias = weight_of(r, RNN_B, line * 2 * rows);
    j.peephole = weight_of(r, RNN_P, line * 3 * p.hidden);
    j.sums = room.sums;
    j.h[0] = room.h[0];
    j.h[1] = room.h[1];
    j.c = room.c;
    j.reset = room.reset;
    j.y = last ? r->out[RNN_Y].data : room.between[layer % 2];
    j.h0 = h0 ? h0 + states * size : NULL;
    j.c0 = c0 && lstm ? c0 + states * size : NULL;
    j.hn = (char *)r->out[RNN_HN].data + states * size;
    j.cn = lstm ? (char *)r->out[RNN_CN].data + states * size : NULL;
    j.lengths = (const int32_t *)rnn_input(r->n_in, r->in, RNN_LENGTHS);
    j.steps = p.steps;
    j.batch = p.batch;
    j.hidden = p.hidden;
    j.x_step = layer ? p.batch * wide : p.x_step;
    j.x_row = layer ? wide : p.x_row;
    j.y_step = last ? p.y_step : p.batch * wide;
    j.y_row = last ? p.y_row : wide;
    j.y_direction = last ? p.y_direction : p.hidden;
    j.gates = p.gates;
    j.directions = p.directions;
    j.backward = p.backward;
    j.op = p.op;
    j.reset_after = p.reset_after;
    return j;
}

template <typename X>
static void launch_inputs(const rnn_job &j, cudaStream_t stream)
{
    const int64_t rows = j.steps * j.batch, columns = j.directions * j.gates * j.hidden;
    const int64_t down = (rows + TILE - 1) / TILE;
    const dim3 grid((unsigned)((columns + TILE - 1) / TILE),
                    (unsigned)(down < MOST_Y ? down : MOST_Y));
    if (j.w || j.depth == 0)
        rnn_inputs<X><<<grid, 256, 0, stream>>>(j);
    else
        rnn_skip<X>
            <<<layer_blocks(rows * columns, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(j);
}

template <typename T, int GATES>
static void launch_steps(rnn_job &j, cudaStream_t stream)
{
    const int64_t tiles = (j.batch + ROWS - 1) / ROWS;
    const dim3 grid((unsigned)((j.hidden + WARPS - 1) / WARPS),
                    (unsigned)(tiles < MOST_Y ? tiles : MOST_Y), (unsigned)j.directions);
    const int halves = GATES == 3 && !j.reset_after ? 2 : 1;
    for (int i = 0; i < j.steps; i++)
        for (j.late = 0; j.late < halves; j.late++)
            rnn_step<T, GATES><<<grid, 32 * WARPS, 0, stream>>>(j, i);
    j.late = 0;
}

template <typename T>
static void launch_gates(rnn_job &j, cudaStream_t stream)
{
    if (j.gates == 4)
        launch_steps<T, 4>(j, stream);
    else if (j.gates == 3)
        launch_steps<T, 3>(j, stream);
    else
        launch_steps<T, 1>(j, stream);
}

/* T: the layer's own type; between layers is FP32. */
template <typename T>
static void launch_layer(rnn_job j, bool first, bool last, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(j.directions * j.batch * j.hidden, CUDA_BLOCK);
    if (first)
        launch_inputs<T>(j, stream);
    else
        launch_inputs<float>(j, stream);
    rnn_begin<T><<<blocks, CUDA_BLOCK, 0, stream>>>(j);
    if (last)
        launch_gates<T>(j, stream);
    else
        launch_gates<float>(j, stream);
    rnn_end<T><<<blocks, CUDA_BLOCK, 0, stream>>>(j);
}

static int run(const strata_run *r)
{
    const rnn_plan p = rnn_plan_of((const strata_rnn *)r->params, r->in, r->weight);
    rnn_room room = {};
    int status = STRATA_OK;
    furnish(p, (char *)r->workspace, &room);
    for (int layer = 0; layer < p.layers && status == STRATA_OK; layer++) {
        const rnn_job j = job_of(r, p, room, layer);
        layer_float(r->in[RNN_X].dtype, [&](auto t) {
            launch_layer<decltype(t)>(j, layer == 0, layer + 1 == p.layers,
                                      layer_stream(r));
        });
        status = layer_launched(r, "rnn");
    }
    return status;
}

static const strata_row rows[] = {{{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW,
                                    STRATA_I32_NCHW, STRATA_SAME, STRATA_SAME},
                                   {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "steps",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .workspace = workspace,
     .run = run,
     .bandwidth = 0.2},
};

static const strata_extends rnn = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::RNN",
    .params_size = sizeof(strata_rnn),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&rnn};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::RNN", extends)
