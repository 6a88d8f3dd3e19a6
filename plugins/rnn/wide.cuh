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
#define WIDE_ROWS_AT_ONCE                                                                \
    (WIDE_THREADS / WIDE_PAIRS)                 /* a thread has two units of one         \
                                                 */
#define WIDE_PART (WIDE_UNITS * WIDE_GATES + 4) /* floats: so that no banks meet */

/* Chunks: of a warpgroup. Rows: of the batch. */
template <typename T_, int Gates_, int Chunks_, int Rows_>
struct wide_shape {
    typedef T_ T;
    static const int Gates = Gates_, Chunks = Chunks_, Rows = Rows_;
    static const int Pieces = Rows / 8; /* 16 bytes of h that a thread takes of a chunk */
    static const int Apart = 64 / Rows; /* tiles of 16 units from piece to piece */
    static const int Ahead = Chunks * Pieces <= 16 ? Chunks : 16 / Pieces; /* chunks */
    static const int Panel = Rows * 128; /* bytes of 64 units of h */
    static const int Passes = Rows <= WIDE_ROWS_AT_ONCE ? 1 : Rows / WIDE_ROWS_AT_ONCE;
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
#define WIDE_N_32 N_32
#define WIDE_O_4(d) O_1("+f", d, 0)
#define WIDE_O_8(d) O_2("+f", d, 0)
#define WIDE_O_16(d) O_16("+f", d)
#define WIDE_O_32(d) O_32("+f", d)
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
WIDE_PRODUCTS(64, 32, 32, 33, 34, 35, 36, 37)

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
    uint4 v[S::Ahead][S::Pieces];
    const uint16_t *slots, *state; /* NULL: beyond the batch, and of state zeros */
    const uint16_t *from;          /* of them, this step's */
    int slots_apart, apart;        /* elements from tile to tile */
    int first, tiles;              /* its first piece's tile; how many there are */
    uint32_t to, twist;            /* where pieces go, but for the 16 bytes */

    __device__ wide_rows(const persistent_job &job, const persistent_line &line,
                         int group, uint32_t shared)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
        const int half = S::Rows == 8 ? lane / 8 % 2 : lane / 16;
        const int row = S::Rows == 8 ? lane % 8 : warp % (S::Rows / 16) * 16 + lane % 16;
        const int tile = S::Rows == 8 ? warp * 2 + lane / 16 : warp / (S::Rows / 16);
        const bool has = group + row < job.batch;
        first = (int)threadIdx.x / 128 * S::Chunks * WIDE_STEPS + tile;
        tiles = job.hidden / WIDE_UNITS;
        slots_apart = job.batch * WIDE_UNITS;
        slots = has ? (const uint16_t *)line.slots + (int64_t)first * slots_apart +
                          (int64_t)(group + row) * WIDE_UNITS + half * 8
                    : NULL;
        state = has && line.h0
                    ? (const uint16_t *)line.h0 + (int64_t)(group + row) * job.hidden +
                          first * WIDE_UNITS + half * 8
                    : NULL;
        to = shared + first / 4 * S::Panel + row * 128;
        twist = (uint32_t)((first % 4 * 2 + half) ^ row % 8);
    }
    __device__ void begin(int step, int64_t slot)
    {
        from = step == 0 ? state : slots ? slots + step * slot : NULL;
        apart = step == 0 ? WIDE_UNITS : slots_apart;
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
            v[chunk % S::Ahead][p] = from && first + piece * S::Apart < tiles
                                         ? load(piece)
                                         : make_uint4(0, 0, 0, 0);
        }
    }
    /* An initial state is there, whatever it looks like. */
    __device__ void wait(int chunk, bool initial)
    {
        uint4(&x)[S::Pieces] = v[chunk % S::Ahead];
        for (;;) {
            bool all = true;
#pragma unroll
            for (int p = 0; p < S::Pieces; p++)
                all = all && persistent_there(x[p]);
            if (__all_sync(~0u, all || initial))
                return;
#pragma unroll
            for (int p = 0; p < S::Pieces; p++)
                if (!persistent_there(x[p]))
                    x[p] = load(chunk * S::Pieces + p);
        }
    }
    __device__ void store(int chunk) const
    {
#pragma unroll
        for (int p = 0; p < S::Pieces; p++) {
            const int tile = (chunk * S::Pieces + p) * S::Apart;
            store_four(to + tile / 4 * S::Panel + (twist ^ tile % 4 * 2) * 16,
                       v[chunk % S::Ahead][p]);
        }
    }
};

/* Sums of a warpgroup's half of the depth. What is there first is stored while the rest
 * is on its way: who asked for all of it at once would ask again for all that is late. */
template <class S>
static __device__ inline void
wide_multiply(wide_rows<S> &rows, const uint4 (&weight)[S::Chunks * WIDE_STEPS],
              uint64_t panel, bool initial, float (&d)[S::Rows / 8][4])
{
    const int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
#pragma unroll
    for (int c = 0; c < S::Chunks; c++) {
        rows.wait(c, initial);
        rows.store(c);
#pragma unroll
        for (int a = 1; a < S::Ahead && c == 0; a++)
            rows.ask(a);
        if (c + S::Ahead < S::Chunks)
            rows.ask(c + S::Ahead);
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
    multiply_wait<0>();
    hold(d);
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

/* Two neighbouring units of a row. */
struct wide_cell {
    float h[2], c[2];
    int length;
};

/* A thread's cells: of its row, and in further passes of those behind. */
template <class S>
struct wide_cells {
    typedef typename S::T T;
    const persistent_job &job;
    const persistent_line &line;
    const float *bias;   /* of the block: gates by units */
    int first, row, own; /* the block's first row; the thread's; the block's unit */
    int unit;

    __device__ wide_cells(const persistent_job &j, const persistent_line &l, int group,
                          const float *b)
        : job(j), line(l), bias(b), first(group), row((int)threadIdx.x / WIDE_PAIRS),
          own((int)threadIdx.x % WIDE_PAIRS * 2), unit((int)blockIdx.x * WIDE_UNITS + own)
    {
    }
    __device__ int64_t row_of(int pass) const
    {
        return first + row + pass * WIDE_ROWS_AT_ONCE;
    }
    __device__ bool has(int pass) const
    {
        return row < S::Rows && row_of(pass) < job.batch;
    }
    __device__ float2 load(const void *from, int64_t at) const
    {
        return from ? unpack_two(T(), *(const uint32_t *)((const T *)from + at))
                    : make_float2(0, 0);
    }
    __device__ void begin(wide_cell &x, int pass) const
    {
        float2 h = {0, 0}, c = {0, 0};
        x.length = job.steps;
        if (has(pass)) {
            const int64_t at = row_of(pass) * job.hidden + unit;
            if (job.lengths)
                x.length = max(0, min(job.lengths[row_of(pass)], job.steps));
            h = load(line.h0, at);
            c = load(line.c0, at);
        }
        x.h[0] = h.x, x.h[1] = h.y;
        x.c[0] = c.x, x.c[1] = c.y;
    }
    /* The row's own time of step i. */
    __device__ int64_t time(const wide_cell &x, int i) const
    {
        return line.backward && i < x.length ? x.length - 1 - i : i;
    }
    __device__ void inputs(const wide_cell &x, int pass, int i,
                           uint32_t (&input)[S::Gates]) const
    {
        const T *from = (const T *)line.sums + time(x, i) * job.sums_step +
                        row_of(pass) * job.sums_row + unit;
#pragma unroll
        for (int g = 0; g < S::Gates; g++)
            input[g] = has(pass) && i < x.length
                           ? __ldg((const uint32_t *)(from + g * job.gate))
                           : 0;
    }
    /* r: recurrent sums of unit e. s: of the input. */
    __device__ void move(wide_cell &x, int e, const float4 &r, const float (&s)[4],
                         bool live) const
    {
        const float *b = bias + own + e;
        float h, c = x.c[e];
        if (S::Gates == PERSISTENT_LSTM) {
            const float in = persistent_sigmoid(r.x + (s[0] + b[0]));
            const float out = persistent_sigmoid(r.y + (s[1] + b[WIDE_UNITS]));
            const float forget = persistent_sigmoid(r.z + (s[2] + b[2 * WIDE_UNITS]));
            c = forget * c + in * persistent_tanh(r.w + (s[3] + b[3 * WIDE_UNITS]));
            h = out * persistent_tanh(c);
        } else {
            const float z = persistent_sigmoid(r.x + (s[0] + b[0]));
            const float reset = persistent_sigmoid(r.y + (s[1] + b[WIDE_UNITS]));
            const float n = persistent_tanh(s[2] + b[2 * WIDE_UNITS] +
                                            reset * (r.z + b[3 * WIDE_UNITS]));
            h = n + z * (x.h[e] - n);
        }
        x.h[e] = live ? h : x.h[e];
        x.c[e] = live ? c : x.c[e];
    }
    /* Both units; parts: sums of the warpgroups. */
    __device__ void move(wide_cell &x, int pass, const float *parts,
                         const uint32_t (&input)[S::Gates], bool live) const
    {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const float *at = parts + ((row + pass * WIDE_ROWS_AT_ONCE) * WIDE_PART) +
                              (own + e) * WIDE_GATES;
            const float4 r = *(const float4 *)at, more = *(const float4 *)(at + S::Part);
            float s[WIDE_GATES] = {};
#pragma unroll
            for (int g = 0; g < S::Gates; g++) {
                const float2 two = unpack_two(T(), input[g]);
                s[g] = e ? two.y : two.x;
            }
            move(x, e,
                 make_float4(r.x + more.x, r.y + more.y, r.z + more.z, r.w + more.w), s,
                 live);
        }
    }
    /* h, for all blocks' step i. */
    __device__ void give(int pass, int i, uint32_t both) const
    {
        if (has(pass))
            persistent_give((T *)line.slots + i * job.slot +
                                wide_at(job.batch, row_of(pass), unit),
                            both);
    }
    __device__ void put(int pass, int64_t t, uint32_t both) const
    {
        if (has(pass))
            *(uint32_t *)((T *)line.y + t * job.y_step + row_of(pass) * job.y_row +
                          unit) = both;
    }
    __device__ void end(const wide_cell &x, int pass, int longest) const
    {
        const int64_t at = row_of(pass) * job.hidden + unit;
        if (!has(pass))
            return;
        *(uint32_t *)((T *)line.hn + at) = pack_two(T(), x.h[0], x.h[1]);
        if (line.cn)
            *(uint32_t *)((T *)line.cn + at) = pack_two(T(), x.c[0], x.c[1]);
        for (int t = longest; t < job.steps; t++)
            put(pass, t, 0);
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
    wide_cell cell[S::Passes];
    uint4 weight[S::Chunks * WIDE_STEPS];

    /* [block][half][step][thread] */
    const uint4 *from =
        (const uint4 *)line.weight + threadIdx.x % 128 +
        ((int64_t)blockIdx.x * WIDE_GROUPS + half) * S::Chunks * WIDE_STEPS * 128;
#pragma unroll
    for (int s = 0; s < S::Chunks * WIDE_STEPS; s++)
        weight[s] = from[s * 128];
    wide_biases<S::Gates>(job, line, bias);
#pragma unroll
    for (int pass = 0; pass < S::Passes; pass++)
        cells.begin(cell[pass], pass);
    __syncthreads();

    for (int i = 0; i < longest; i++) {
        /* Who writes a part has passed the barrier behind its last readers'. */
        float *const part = parts + i % 2 * WIDE_GROUPS * S::Part;
        uint32_t input[S::Passes][S::Gates];
        float d[S::Rows / 8][4];
        rows.begin(i, job.slot);
        rows.ask(0);
#pragma unroll
        for (int pass = 0; pass < S::Passes; pass++)
            cells.inputs(cell[pass], pass, i, input[pass]);
        wide_multiply<S>(rows, weight, panel, i == 0, d);
        wide_part<S>(part + half * S::Part, d);
        __syncthreads();
#pragma unroll
        for (int pass = 0; pass < S::Passes && cells.row < S::Rows; pass++) {
            wide_cell &x = cell[pass];
            const bool live = i < x.length;
            cells.move(x, pass, part, input[pass], live);
            const uint32_t both = pack_two(typename S::T(), x.h[0], x.h[1]);
            if (i + 1 < longest)
                cells.give(pass, i + 1, both);
            cells.put(pass, cells.time(x, i), live ? both : 0);
        }
    }
#pragma unroll
    for (int pass = 0; pass < S::Passes; pass++)
        cells.end(cell[pass], pass, longest);
}

#endif /* PLUGINS_RNN_WIDE_CUH */
