/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine that runs a program on CUDA. A thread has one row of values in registers,
 * the result before; all others, inputs as they came and results in FP32, are the
 * thread's own slots in shared memory. So a row's number is an address, where registers
 * would have to be chosen by branches, and what is loaded needs none of them.
 *
 * All branches are the same for all threads. An instruction takes about 25 to find out
 * what it is, which many elements of a thread share.
 */
#ifndef PLUGINS_POINTWISE_MACHINE_CUH
#define PLUGINS_POINTWISE_MACHINE_CUH

#include "plugins/common/pointwise_walk.cuh"
#include "plugins/common/pointwise/program.h"

/* Elements of a thread at once: of 4 bytes fewer, as memory takes longer for each. */
template <typename T>
constexpr int MACHINE_WIDTH = sizeof(T) == 4 ? 8 : 16;

/* An operand is an input's number, or it of one element, or of BOOL8, or both; or
 * PROGRAM_INPUTS and more, a result that is kept. */
enum {
    OPERAND_ONE = 0x10,
    OPERAND_TRUTH = 0x20,
    OPERAND_LAST = 0x40, /* the result before; `a` alone may be it */
    OPERAND_NONE = 0x80
};

struct machine_step {
    uint8_t op, group, a, b;
    uint8_t c, to, reserved[2]; /* to: OPERAND_NONE, or where the result is kept */
    float alpha, beta;
};

struct machine {
    void *y;
    const void *in[PROGRAM_INPUTS];
    int32_t n_steps, n_in;
    int32_t n_kept;      /* rows of FP32, those of rare operations included */
    uint32_t one, truth; /* bit i: input i has one element, is of BOOL8 */
    int32_t truth_out;
    __align__(16) machine_step step[PROGRAM_STEPS + 1]; /* one more is read */
};

static __device__ __forceinline__ uint4 read_slot(uint32_t at)
{
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

static __device__ __forceinline__ void write_slot(uint32_t at, const uint4 &x)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.x), "r"(x.y),
                 "r"(x.z), "r"(x.w)
                 : "memory");
}

/* A slot as elements. */
template <typename S>
union slot_of {
    uint4 all;
    S v[16 / sizeof(S)];
    __device__ slot_of()
    {
    }
};

/* A thread's slots: 16 bytes of it, then those of the next thread, and so on. `inputs`
 * and `kept` are the addresses in shared memory of its first: generic ones would be
 * converted time and again. An input's row has a slot for each pack of it. */
template <typename T>
struct machine_rows {
    static const int V = MACHINE_WIDTH<T>, N = 16 / (int)sizeof(T);
    static const int TILE = CUDA_BLOCK * V;  /* elements of a block */
    static const int SLOT = CUDA_BLOCK * 16; /* from a slot of a thread to its next */
    static const int ROW = V / N * SLOT, KEPT = V / 4 * SLOT;
    uint32_t inputs, kept; /* kept: of number 0, which is an input */
    const machine &p;

    __device__ __forceinline__ uint32_t slot(int row, int e) const
    {
        return inputs + row * ROW + e / N * SLOT;
    }
    __device__ __forceinline__ uint32_t kept_slot(int row, int e) const
    {
        return kept + row * KEPT + e / 4 * SLOT;
    }
    template <typename S>
    __device__ __forceinline__ void widen(float *v, uint32_t at) const
    {
        slot_of<S> x;
        x.all = read_slot(at);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = point_value<float>(x.v[i]);
    }
    __device__ __forceinline__ float only(int operand) const
    {
        const void *x = p.in[operand & (PROGRAM_INPUTS - 1)];
        return operand & OPERAND_TRUTH ? point_value<float>(*(const uint8_t *)x)
                                       : point_value<float>(*(const T *)x);
    }
    /* M elements from element e on. */
    template <int M>
    __device__ __forceinline__ void fetch(float *v, int operand, int e) const
    {
        if (operand < PROGRAM_INPUTS) {
#pragma unroll
            for (int i = 0; i < M; i += N)
                widen<T>(v + i, slot(operand, e + i));
        } else if (operand < OPERAND_ONE) {
#pragma unroll
            for (int i = 0; i < M; i += 4) {
                const uint4 x = read_slot(kept_slot(operand, e + i));
                v[i] = __uint_as_float(x.x), v[i + 1] = __uint_as_float(x.y);
                v[i + 2] = __uint_as_float(x.z), v[i + 3] = __uint_as_float(x.w);
            }
        } else if (operand & OPERAND_ONE) {
            const float x = only(operand);
#pragma unroll
            for (int i = 0; i < M; i++)
                v[i] = x;
        } else {
#pragma unroll
            for (int i = 0; i < M; i += N)
                widen<uint8_t>(v + i, slot(operand & (PROGRAM_INPUTS - 1), e + i));
        }
    }
    __device__ __forceinline__ void keep(int row, const float *v) const
    {
#pragma unroll
        for (int i = 0; i < V; i += 4)
            write_slot(kept_slot(row, i),
                       make_uint4(__float_as_uint(v[i]), __float_as_uint(v[i + 1]),
                                  __float_as_uint(v[i + 2]), __float_as_uint(v[i + 3])));
    }
};

/* ---- operations: y = op(y), y = op(y, b), y = y ? b : c ------------------------------
 */

template <int V>
static __device__ __forceinline__ void
machine_unary(int op, int group, const pointwise_args &k, float (&y)[V])
{
    if (group == POINTWISE_SIMPLE) {
        if (op == POINTWISE_COPY || op == STRATA_UNARY_IS_INF) /* not in programs */
            __builtin_unreachable();
        point_simple_one<V>(op, k, y, y);
    } else if (group == POINTWISE_KINDS) {
        point_kinds<V>(op, k, y, y);
    } else {
        if (op == POINTWISE_ELEMENTWISE + STRATA_DIV)
            __builtin_unreachable();
        point_curves<V>(op, y, y, y);
    }
}

template <int V>
static __device__ __forceinline__ void machine_binary(int op, float (&y)[V],
                                                      const float (&b)[V])
{
    if (op == POINTWISE_ELEMENTWISE + STRATA_DIV)
        point_curves<V>(POINTWISE_ELEMENTWISE + STRATA_DIV, y, y, b);
    else
        point_simple_two<V>(op, y, y, b);
}

template <typename T>
static __device__ __forceinline__ void machine_select(const machine_rows<T> &rows, int b,
                                                      int c, float (&y)[MACHINE_WIDTH<T>])
{
    const int N = machine_rows<T>::N;
#pragma unroll
    for (int e = 0; e < MACHINE_WIDTH<T>; e += N) { /* not all of b and c at a time */
        float u[N], v[N];
        rows.template fetch<N>(u, b, e);
        rows.template fetch<N>(v, c, e);
#pragma unroll
        for (int i = 0; i < N; i++)
            y[e + i] = y[e + i] != 0 ? u[i] : v[i];
    }
}

/* Operations that are calls, one element after the other, by way of two rows behind those
 * of the results: no register has to outlive a call. */
template <typename T>
static __device__ __forceinline__ void machine_rare(const machine_rows<T> &rows, int op,
                                                    int b, float (&y)[MACHINE_WIDTH<T>])
{
    const int first = PROGRAM_INPUTS + rows.p.n_kept - 2, V = MACHINE_WIDTH<T>;
    rows.keep(first, y);
    if (b != OPERAND_NONE)
        rows.template fetch<V>(y, b, 0);
    rows.keep(first + 1, y);
#pragma unroll 1
    for (int e = 0; e < V; e++) {
        float *x = (float *)__cvta_shared_to_generic(rows.kept_slot(first, e)) + e % 4;
        *x = point_rare<POINTWISE_RARE>(op, *x, x[machine_rows<T>::KEPT / 4]);
    }
    rows.template fetch<V>(y, first, 0);
}

/* ---- programs ------------------------------------------------------------------------
 */

/* y: the program's result, of inputs that are in their slots. */
template <typename T, bool Rare>
static __device__ __forceinline__ void machine_run(const machine_rows<T> &rows,
                                                   float (&y)[MACHINE_WIDTH<T>])
{
    const int V = MACHINE_WIDTH<T>;
    uint4 word = *(const uint4 *)&rows.p.step[0];
    int i = 0;
#pragma unroll 1
    do {
        const uint4 next = *(const uint4 *)&rows.p.step[++i];
        const int op = word.x & 255, group = word.x >> 8 & 255;
        const int a = word.x >> 16 & 255, b = word.x >> 24;
        const int c = word.y & 255, to = word.y >> 8 & 255;
        const pointwise_args k = {__uint_as_float(word.z), __uint_as_float(word.w), 0};
        if (a != OPERAND_LAST)
            rows.template fetch<V>(y, a, 0);
        if (Rare && group == POINTWISE_RARE) {
            machine_rare(rows, op, b, y);
        } else if (b == OPERAND_NONE) {
            machine_unary<V>(op, group, k, y);
        } else if (op == POINTWISE_SELECT) {
            machine_select(rows, b, c, y);
        } else {
            float v[V];
            rows.template fetch<V>(v, b, 0);
            machine_binary<V>(op, y, v);
        }
        if (to != OPERAND_NONE)
            rows.keep(to, y);
        word = next;
    } while (i < rows.p.n_steps);
}

#endif /* PLUGINS_POINTWISE_MACHINE_CUH */
