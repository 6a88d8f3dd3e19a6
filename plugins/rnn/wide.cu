/* SPDX-License-Identifier: Apache-2.0
 *
 * The wide kernel's shapes, weights and launches.
 */
#include "plugins/rnn/wide.cuh"

#include "plugins/rnn/launch.cuh"

#define MOST_CHUNKS 4 /* of a warpgroup */

/* ---- which kernel ---------------------------------------------------------------------
 */

template <class S>
static persistent_entry entry_of_shape(void)
{
    return {(const void *)wide_kernel<S>, WIDE_UNITS, WIDE_THREADS, S::Bytes};
}

template <typename T, int Gates, int Chunks>
static persistent_entry entry_of_rows(const persistent_shape &s)
{
    return s.rows == 8 ? entry_of_shape<wide_shape<T, Gates, Chunks, 8>>()
           : s.rows == 16
               ? entry_of_shape<wide_shape<T, Gates, Chunks, 16>>()
               : entry_of_shape<wide_shape<T, Gates, Chunks, WIDE_MOST_ROWS>>();
}

template <typename T, int Gates>
static persistent_entry entry_of_chunks(const persistent_shape &s)
{
    return s.chunks == 1   ? entry_of_rows<T, Gates, 1>(s)
           : s.chunks == 2 ? entry_of_rows<T, Gates, 2>(s)
           : s.chunks == 3 ? entry_of_rows<T, Gates, 3>(s)
                           : entry_of_rows<T, Gates, 4>(s);
}

template <typename T>
static persistent_entry entry_of_gates(const persistent_shape &s)
{
    return s.gates == PERSISTENT_LSTM ? entry_of_chunks<T, PERSISTENT_LSTM>(s)
                                      : entry_of_chunks<T, PERSISTENT_GRU>(s);
}

static persistent_entry entry_of(const persistent_shape &s)
{
    return s.dtype == STRATA_FP16 ? entry_of_gates<__half>(s)
                                  : entry_of_gates<__nv_bfloat16>(s);
}

/* ---- how a batch is divided -------------------------------------------------------- */

static int check(const strata_node *n, int gates, int64_t hidden, int64_t batch)
{
    if (gates < PERSISTENT_GRU)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "cells of one gate; lstm and gru are taken");
    if (hidden % WIDE_UNITS || hidden > MOST_CHUNKS * WIDE_GROUPS * WIDE_CHUNK)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld hidden units; a multiple of %d is taken, up to %d",
                           (long long)hidden, WIDE_UNITS,
                           MOST_CHUNKS * WIDE_GROUPS * WIDE_CHUNK);
    if (batch > INT32_MAX / WIDE_UNITS)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "a batch of %lld; up to %d is taken",
                           (long long)batch, INT32_MAX / WIDE_UNITS);
    return STRATA_OK;
}

static int plan(const strata_node *n, int gates, int64_t hidden, int directions,
                int64_t batch, persistent_shape *out)
{
    const int64_t once = WIDE_GROUPS * WIDE_CHUNK; /* depth of a chunk each */
    const int status = check(n, gates, hidden, batch);
    *out = {.dtype = n->in[0].dtype,
            .gates = gates,
            .chunks = (int)((hidden + once - 1) / once)};
    return status ? status
                  : persistent_divide(n, hidden, directions, batch, WIDE_MOST_ROWS,
                                      entry_of, out);
}

/* ---- weights -------------------------------------------------------------------------
 */

/* Halves of a block. */
static int block_weights(const persistent_shape *s)
{
    return WIDE_UNITS * WIDE_GATES * WIDE_GROUPS * s->chunks * WIDE_CHUNK;
}

static size_t pack_size(const persistent_shape *s, int64_t hidden)
{
    return (size_t)(hidden / WIDE_UNITS * block_weights(s)) * sizeof(uint16_t);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    pack_kernel(uint16_t *to, int64_t count, int block, const float *r, int64_t hidden,
                int gates)
{
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * CUDA_BLOCK) {
        const wide_place at = wide_place_of((int)(i % block));
        const int64_t unit = i / block * WIDE_UNITS + at.unit;
        to[i] = at.gate < gates && at.k < hidden
                    ? persistent_bits(r[(at.gate * hidden + unit) * hidden + at.k], T())
                    : 0;
    }
}

static int pack_weights(const strata_node *n, const persistent_shape *s, const float *r,
                        int64_t hidden, void *packed)
{
    const int64_t count = (int64_t)(pack_size(s, hidden) / sizeof(uint16_t));
    const cudaStream_t stream = (cudaStream_t)n->stream;
    const unsigned blocks = layer_blocks(count, CUDA_BLOCK);
    if (s->dtype == STRATA_FP16)
        pack_kernel<__half><<<blocks, CUDA_BLOCK, 0, stream>>>(
            (uint16_t *)packed, count, block_weights(s), r, hidden, s->gates);
    else
        pack_kernel<__nv_bfloat16><<<blocks, CUDA_BLOCK, 0, stream>>>(
            (uint16_t *)packed, count, block_weights(s), r, hidden, s->gates);
    return persistent_packed(n);
}

/* ---- a layer -------------------------------------------------------------------------
 */

static int launch(const strata_run *r, const persistent_shape *s,
                  const persistent_job *job)
{
    return persistent_enqueue(r, s, entry_of(*s), job);
}

extern "C" const persistent_kind persistent_wide = {
    .plan = plan, .pack_size = pack_size, .pack = pack_weights, .launch = launch};
