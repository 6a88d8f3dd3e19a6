/* SPDX-License-Identifier: Apache-2.0
 *
 * All steps of an LSTM or GRU in one kernel, FP16 and BF16, by wgmma: for batches whose
 * rows persistent.cuh would take in many turns. For sm_90a.
 *
 * A block owns 16 hidden units and some rows of the batch. The 64 rows of R that 16 units
 * have are the first factor of every product, in registers for the whole sequence, half
 * of the depth in each of two warpgroups. A step's h is the second: each thread takes 16
 * bytes at a time from the slots, by which blocks meet as persistent.cuh says, and puts
 * them where the tensor cores read. Both halves' sums meet in shared memory, where a
 * thread finds all gates of its two units. Cells stay in registers, in FP32.
 *
 * Floor of a step of 64 rows and 1024 units, on 132 multiprocessors at 1.98 GHz: 128
 * blocks read 64 KB of h each, 8.4 MB, 1.5 us at 5.5 TB/s of the L2's; products are 1024
 * clocks, 0.5 us, of which all but the last chunk's hide behind the reads; h has its way
 * through the L2, 0.5 us; cells are 0.2. Together 2.4 us. Rows are divided rather than
 * the depth, for then blocks that share rows read nothing but those, and no sums travel.
 */
#ifndef PLUGINS_RNN_WIDE_CUH
#define PLUGINS_RNN_WIDE_CUH

#include "plugins/common/product/pair.cuh"
#include "plugins/common/product/wgmma.cuh"
#include "plugins/rnn/persistent.cuh"

#define WIDE_GROUPS 2 /* warpgroups, each half of the depth */
#define WIDE_THREADS (128 * WIDE_GROUPS)
#define WIDE_UNITS 16  /* of a block */
#define WIDE_GATES 4   /* that a unit has room for */
#define WIDE_CHUNK 128 /* of the depth, of a warpgroup at a time */
#define WIDE_STEPS (WIDE_CHUNK / 16)
#define WIDE_PAIRS (WIDE_UNITS / 2)
#define WIDE_MOST_ROWS (WIDE_THREADS / WIDE_PAIRS) /* a thread has a pair of one */
#define WIDE_PART (WIDE_UNITS * WIDE_GATES + 4)    /* floats: so that no banks meet */

/* Chunks: of a warpgroup. Rows: of the batch, at most WIDE_MOST_ROWS. */
template <typename T_, int Gates_, int Chunks_, int Rows_>
struct wide_shape {
    typedef T_ T;
    static const int Gates = Gates_, Chunks = Chunks_, Rows = Rows_;
    static const int Lead = Chunks < 2 ? Chunks : 2;
    static const int Pieces = Rows / 8; /* 16 bytes of h that a thread takes of a chunk */
    static const int Apart = 64 / Rows; /* tiles of 16 units from piece to piece */
    static const int Panel = Rows * 128;      /* bytes of 64 units of h */
    static const int Part = Rows * WIDE_PART; /* floats of a warpgroup's sums */
    static const int HBytes = WIDE_GROUPS * Chunks * 2 * Panel;
    static const int Bytes = 1024 /* to align */ + HBytes +
                             (2 * WIDE_GROUPS * Part + WIDE_GATES * WIDE_UNITS) * 4;
};

/* ---- products -------------------------------------------------------------------------
 */

/* d = a*b + (add ? d : 0): a of 64 rows, in registers; rows of b along the depth. */
template <typename T, int N>
struct wide_product;

#define WIDE_N_4 "%0,%1,%2,%3"
#define WIDE_N_8 WIDE_N_4 ",%4,%5,%6,%7"
#define WIDE_N_16 N_16
#define WIDE_O_4(d) O_1("+f", d, 0)
#define WIDE_O_8(d) O_2("+f", d, 0)
#define WIDE_O_16(d) O_16("+f", d)
/* a to g: the numbers of the operands that follow the sums. */
#define WIDE_PRODUCT(type, name, n, count, a, b, c, e, f, g)                             \
    template <>                                                                          \
    struct wide_product<type, n> {                                                       \
        static __device__ inline void add(float (&d)[n / 8][4], const uint4 &x,          \
                                          uint64_t y, int32_t add)                       \
        {                                                                                \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #g ", 0;\n"                \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." name "." name \
                         " {" WIDE_N_##count "}, {%" #a ", %" #b ", %" #c ", %" #e       \
                                             "}, %" #f ", p, 1, 1, 0;\n}\n"              \
                         : WIDE_O_##count(d)                                             \
                         : "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w), "l"(y), "r"(add));    \
        }                                                                                \
    };
#define WIDE_PRODUCTS(...)                                                               \
    WIDE_PRODUCT(__half, "f16", __VA_ARGS__)                                             \
    WIDE_PRODUCT(__nv_bfloat16, "bf16", __VA_ARGS__)

WIDE_PRODUCTS(8, 4, 4, 5, 6, 7, 8, 9)
WIDE_PRODUCTS(16, 8, 8, 9, 10, 11, 12, 13)
WIDE_PRODUCTS(32, 16, 16, 17, 18, 19, 20, 21)

/* Where in R a half of a block's packed weights comes from: [step][thread][word][2], as
 * wgmma has its first factor. A lane's two sums of a column, 8 rows apart, are gates of
 * one unit. */
struct wide_place {
    int unit, gate, k;
};

static __device__ inline wide_place wide_place_of(int half)
{
    const int word = half / 2 % 4, thread = half / 8 % 128, lane = thread % 32;
    return {thread / 32 * 4 + lane / 8, lane / 4 % 2 * 2 + word % 2,
            half / 1024 * 16 + word / 2 * 8 + lane % 4 * 2 + half % 2};
}

/* ---- h --------------------------------------------------------------------------------
 */

/* Where h of (row, unit) lies in a slot: tiles of 16 units one after another, so that
 * what a warp takes at once is one piece of 512 bytes. */
static __device__ inline int64_t wide_at(int64_t batch, int64_t row, int64_t unit)
{
    return (unit / WIDE_UNITS * batch + row) * WIDE_UNITS + unit % WIDE_UNITS;
}

static __device__ inline void store_four(uint32_t to, const uint4 &v)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

/* A warpgroup's half of the depth: of a thread 16 bytes of some tiles of units, of one
 * row. Eight lanes that store together have eight rows, so that no banks meet. */
template <class S>
struct wide_rows {
    uint4 v[S::Chunks][S::Pieces];
    const uint16_t *from, *slots; /* of this step; of the next */
    int64_t slot;
    int apart, slots_apart; /* elements from tile to tile */
    int first, tiles, all; /* its first piece's tile; how many there are, and of a slot */
    uint32_t to, twist;    /* where pieces go, but for the 16 bytes */

    __device__ wide_rows(const persistent_job &job, const persistent_line &line,
                         int group, uint32_t shared)
        : slot(job.slot), apart(WIDE_UNITS), slots_apart(job.batch * WIDE_UNITS)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        const int half = S::Rows == 8 ? lane / 8 % 2 : lane / 16;
        const int row = S::Rows == 8 ? lane % 8 : warp % (S::Rows / 16) * 16 + lane % 16;
        const int tile = S::Rows == 8 ? warp * 2 + lane / 16 : warp / (S::Rows / 16);
        const int64_t place = group + row;
        first = (int)threadIdx.x / 128 * S::Chunks * WIDE_STEPS + tile;
        all = place < job.batch ? job.hidden / WIDE_UNITS : 0;
        tiles = line.h0 ? all : 0;
        from = (const uint16_t *)line.h0 + place * job.hidden + first * WIDE_UNITS +
               half * 8;
        slots = (const uint16_t *)line.slots + slot + (int64_t)first * slots_apart +
                place * WIDE_UNITS + half * 8;
        to = shared + first / 4 * S::Panel + row * 128;
        twist = (uint32_t)((first % 4 * 2 + half) ^ row % 8);
    }
    /* To the next step, whose h is in a slot. */
    __device__ void next(void)
    {
        from = slots;
        slots += slot;
        apart = slots_apart;
        tiles = all;
    }
    __device__ uint4 load(int piece) const
    {
        return persistent_ask(from + (int64_t)apart * (piece * S::Apart));
    }
    __device__ void ask(int chunk)
    {
#pragma unroll
        for (int p = 0; p < S::Pieces; p++) {
            const int piece = chunk * S::Pieces + p;
            v[chunk][p] =
                first + piece * S::Apart < tiles ? load(piece) : make_uint4(0, 0, 0, 0);
        }
    }
    static __device__ bool missing(const uint4 &x)
    {
        return max(max(x.x, x.y), max(x.z, x.w)) == UINT32_MAX;
    }
    /* An initial state is there, whatever it looks like. */
    __device__ void wait(int chunk, bool initial)
    {
        uint4(&x)[S::Pieces] = v[chunk];
        for (;;) {
            uint32_t most = 0;
#pragma unroll
            for (int p = 0; p < S::Pieces; p++)
                most = max(most, max(max(x[p].x, x[p].y), max(x[p].z, x[p].w)));
            if (initial || !__any_sync(~0u, most == UINT32_MAX))
                return;
#pragma unroll
            for (int p = 0; p < S::Pieces; p++)
                if (missing(x[p]))
                    x[p] = load(chunk * S::Pieces + p);
        }
    }
    __device__ void store(int chunk) const
    {
#pragma unroll
        for (int p = 0; p < S::Pieces; p++) {
            const int tile = (chunk * S::Pieces + p) * S::Apart;
            store_four(to + tile / 4 * S::Panel + (twist ^ tile % 4 * 2) * 16,
                       v[chunk][p]);
        }
    }
    /* What is asked for before any of it is there. Who asked for all would ask again for
     * all that is late, and be in the way of others. */
    __device__ void lead(void)
    {
#pragma unroll
        for (int c = 0; c < S::Lead; c++)
            ask(c);
    }
};

/* Begin the sums of a warpgroup's half of the depth. */
template <class S>
static __device__ inline void
wide_multiply(wide_rows<S> &rows, const uint4 (&weight)[S::Chunks * WIDE_STEPS],
              uint64_t panel, int group, bool initial, float (&d)[S::Rows / 8][4])
{
#pragma unroll
    for (int c = 0; c < S::Chunks; c++) {
        rows.wait(c, initial);
        rows.store(c);
#pragma unroll
        for (int a = S::Lead; a < S::Chunks && c == 0; a++)
            rows.ask(a);
        publish_shared();
        named_sync(1 + group, 128);
        multiply_begin();
#pragma unroll
        for (int s = c * WIDE_STEPS; s < (c + 1) * WIDE_STEPS; s++)
            wide_product<typename S::T, S::Rows>::add(
                d, weight[s], panel + (uint64_t)((s / 4 * S::Panel + s % 4 * 32) >> 4),
                s > 0);
        multiply_commit();
    }
}

/* To where cells find them: rows of units by gates. */
template <class S>
static __device__ inline void wide_part(float *part, const float (&d)[S::Rows / 8][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    float *to = part + lane % 4 * 2 * WIDE_PART + (warp * 4 + lane / 8) * WIDE_GATES +
                lane / 4 % 2 * 2;
#pragma unroll
    for (int n = 0; n < S::Rows / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            *(float2 *)(to + (n * 8 + e) * WIDE_PART) = make_float2(d[n][e], d[n][e + 2]);
}

/* ---- cells ----------------------------------------------------------------------------
 */

static __device__ inline uint32_t wide_word(const void *from)
{
    uint32_t v; /* volatile: not before what is asked for in front of it */
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(from));
    return v;
}

/* Two neighbouring units of a row. */
template <class S>
struct wide_cell {
    float h[2], c[2];
    uint32_t input[S::Gates];
    const typename S::T *sums; /* of the coming step */
    typename S::T *y, *slot;   /* of this step; of the next */
    int length;                /* 0: the row is none */
};

/* What a thread's cells are moved by. */
template <class S>
struct wide_cells {
    typedef typename S::T T;
    const persistent_job &job;
    const persistent_line &line;
    const float *bias;   /* of the block: gates by units */
    int row, own;        /* of the block: the thread's row, the first of its units */
    int64_t place, unit; /* of the layer */
    bool has;
    int64_t sums_step, y_step; /* from a row's step to its next */

    __device__ wide_cells(const persistent_job &j, const persistent_line &l, int group,
                          const float *b)
        : job(j), line(l), bias(b), row((int)threadIdx.x / WIDE_PAIRS),
          own((int)threadIdx.x % WIDE_PAIRS * 2), place(group + row),
          unit((int)blockIdx.x * WIDE_UNITS + own), has(row < S::Rows && place < j.batch),
          sums_step(l.backward ? -j.sums_step : j.sums_step),
          y_step(l.backward ? -j.y_step : j.y_step)
    {
    }
    __device__ float2 load(const void *from, int64_t at) const
    {
        return from ? unpack_two(T(), *(const uint32_t *)((const T *)from + at))
                    : make_float2(0, 0);
    }
    __device__ T *y_of(int64_t t) const
    {
        return (T *)line.y + t * job.y_step + place * job.y_row + unit;
    }
    __device__ void begin(wide_cell<S> &x) const
    {
        const int64_t at = place * job.hidden + unit;
        float2 h = {0, 0}, c = {0, 0};
        x.length = has ? job.steps : 0;
        if (has && job.lengths)
            x.length = max(0, min(job.lengths[place], job.steps));
        if (has) {
            h = load(line.h0, at);
            c = load(line.c0, at);
        }
        x.h[0] = h.x, x.h[1] = h.y;
        x.c[0] = c.x, x.c[1] = c.y;
        const int64_t t = line.backward ? x.length - 1 : 0;
        x.sums = (const T *)line.sums + t * job.sums_step + place * job.sums_row + unit;
        x.y = y_of(t);
        x.slot = (T *)line.slots + job.slot + wide_at(job.batch, place, unit);
    }
    /* Ask for the inputs of step i. */
    __device__ void ask(wide_cell<S> &x, int i) const
    {
#pragma unroll
        for (int g = 0; g < S::Gates; g++)
            x.input[g] = i < x.length ? wide_word(x.sums + g * job.gate) : 0;
        x.sums += sums_step;
    }
    /* The inputs of unit e with their biases; of gru's reset gate's factor, that alone.
     */
    __device__ void sum(const wide_cell<S> &x, float (&s)[2][WIDE_GATES]) const
    {
#pragma unroll
        for (int g = 0; g < WIDE_GATES; g++) {
            const float2 b = *(const float2 *)(bias + g * WIDE_UNITS + own);
            const float2 in = g < S::Gates
                                  ? unpack_two(T(), x.input[g < S::Gates ? g : 0])
                                  : make_float2(0, 0);
            s[0][g] = in.x + b.x;
            s[1][g] = in.y + b.y;
        }
    }
    /* r: recurrent sums of unit e. s: the others. */
    __device__ void move(wide_cell<S> &x, int e, const float4 &r,
                         const float (&s)[WIDE_GATES], bool live) const
    {
        float h, c = x.c[e];
        if (S::Gates == PERSISTENT_LSTM) {
            const float in = persistent_sigmoid(r.x + s[0]);
            const float out = persistent_sigmoid(r.y + s[1]);
            const float forget = persistent_sigmoid(r.z + s[2]);
            c = forget * c + in * persistent_tanh(r.w + s[3]);
            h = out * persistent_tanh(c);
        } else {
            const float z = persistent_sigmoid(r.x + s[0]);
            const float reset = persistent_sigmoid(r.y + s[1]);
            const float n = persistent_tanh(s[2] + reset * (r.z + s[3]));
            h = n + z * (x.h[e] - n);
        }
        x.h[e] = live ? h : x.h[e];
        x.c[e] = live ? c : x.c[e];
    }
    /* Both units; parts: sums of the warpgroups. */
    __device__ void move(wide_cell<S> &x, const float *parts,
                         const float (&s)[2][WIDE_GATES], bool live) const
    {
        const float *at = parts + row * WIDE_PART + own * WIDE_GATES;
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const float4 r = *(const float4 *)(at + e * WIDE_GATES);
            const float4 more = *(const float4 *)(at + e * WIDE_GATES + S::Part);
            move(x, e,
                 make_float4(r.x + more.x, r.y + more.y, r.z + more.z, r.w + more.w),
                 s[e], live);
        }
    }
    /* h, for all blocks' next step. */
    __device__ void give(wide_cell<S> &x) const
    {
        if (has)
            persistent_give(x.slot, pack_two(T(), x.h[0], x.h[1]));
        x.slot += job.slot;
    }
    /* y of step i. */
    __device__ void put(wide_cell<S> &x, int i) const
    {
        if (i < x.length)
            *(uint32_t *)x.y = pack_two(T(), x.h[0], x.h[1]);
        else if (has)
            *(uint32_t *)y_of(i) = 0;
        x.y += y_step;
    }
    __device__ void end(const wide_cell<S> &x, int longest) const
    {
        const int64_t at = place * job.hidden + unit;
        if (!has)
            return;
        *(uint32_t *)((T *)line.hn + at) = pack_two(T(), x.h[0], x.h[1]);
        if (line.cn)
            *(uint32_t *)((T *)line.cn + at) = pack_two(T(), x.c[0], x.c[1]);
        for (int t = longest; t < job.steps; t++)
            *(uint32_t *)y_of(t) = 0;
    }
};

/* Biases of the block's units: of inputs and recurrent together, but gru's last gate has
 * apart, as the fourth, what the reset is applied to. */
template <int GATES>
static __device__ inline void wide_biases(const persistent_job &job,
                                          const persistent_line &line, float *bias)
{
    for (int i = threadIdx.x; i < WIDE_GATES * WIDE_UNITS; i += WIDE_THREADS) {
        const int gate = i / WIDE_UNITS;
        const int64_t unit = (int64_t)blockIdx.x * WIDE_UNITS + i % WIDE_UNITS;
        const int64_t second = GATES * job.hidden + unit;
        const bool apart = GATES == PERSISTENT_GRU && gate >= GATES - 1;
        float b = 0;
        if (line.bias && gate < GATES)
            b = line.bias[gate * job.hidden + unit];
        if (line.bias && gate < GATES && !apart)
            b += line.bias[second + gate * job.hidden];
        if (line.bias && gate == GATES)
            b = line.bias[second + (GATES - 1) * job.hidden];
        bias[i] = b;
    }
}

/* ---- the kernel -----------------------------------------------------------------------
 */

template <class S>
static __global__ void __launch_bounds__(WIDE_THREADS, 1)
    wide_kernel(const __grid_constant__ persistent_job job)
{
    extern __shared__ uint8_t memory[];
    const uint32_t base = (uint32_t)__cvta_generic_to_shared(memory);
    uint8_t *const room = memory + (1024 - base % 1024) % 1024;
    const uint32_t shared = (uint32_t)__cvta_generic_to_shared(room);
    float *const parts = (float *)(room + S::HBytes);
    float *const bias = parts + 2 * WIDE_GROUPS * S::Part;

    const persistent_line &line = job.line[blockIdx.y % job.directions];
    const int group = job.first + (int)blockIdx.y / job.directions * S::Rows;
    const int half = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
    const int longest = persistent_longest(job);
    const uint64_t panel = panel_descriptor(shared + half * (S::HBytes / 2), 16);
    const wide_cells<S> cells(job, line, group, bias);
    wide_rows<S> rows(job, line, group, shared);
    wide_cell<S> cell;
    uint4 weight[S::Chunks * WIDE_STEPS];

    /* [block][half][step][thread] */
    const uint4 *from =
        (const uint4 *)line.weight + threadIdx.x % 128 +
        ((int64_t)blockIdx.x * WIDE_GROUPS + half) * S::Chunks * WIDE_STEPS * 128;
#pragma unroll
    for (int s = 0; s < S::Chunks * WIDE_STEPS; s++)
        weight[s] = from[s * 128];
    wide_biases<S::Gates>(job, line, bias);
    rows.lead();
    cells.begin(cell);
    cells.ask(cell, 0);
    __syncthreads();

    for (int i = 0; i < longest; i++) {
        /* Who writes a part has passed the barrier behind its last readers'. */
        float *const part = parts + i % 2 * WIDE_GROUPS * S::Part;
        const bool last = i + 1 == longest;
        float s[2][WIDE_GATES], d[S::Rows / 8][4];
        wide_multiply<S>(rows, weight, panel, half, i == 0, d);
        cells.sum(cell, s);
        multiply_wait<0>();
        hold(d);
        wide_part<S>(part + half * S::Part, d);
        __syncthreads();
        if (S::Rows == WIDE_MOST_ROWS || cells.row < S::Rows)
            cells.move(cell, part, s, i < cell.length);
        if (!last) {
            cells.give(cell);
            rows.next();
            rows.lead();
        }
        cells.put(cell, i);
        cells.ask(cell, i + 1);
    }
    cells.end(cell, longest);
}

#endif /* PLUGINS_RNN_WIDE_CUH */
