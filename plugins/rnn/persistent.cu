/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistent kernel's weights and launches.
 */
#include "plugins/rnn/persistent.cuh"

#include "plugins/rnn/launch.cuh"

#define MOST_ROWS 64 /* of a group */

typedef void (*entry_kernel)(persistent_job);

/* ---- which kernel ---------------------------------------------------------------------
 */

template <typename T, int GATES, int CHUNKS>
static entry_kernel entry_of_tiles(int tiles)
{
    return tiles == 1   ? persistent_kernel<T, GATES, CHUNKS, 1>
           : tiles == 2 ? persistent_kernel<T, GATES, CHUNKS, 2>
           : tiles == 4 ? persistent_kernel<T, GATES, CHUNKS, 4>
                        : persistent_kernel<T, GATES, CHUNKS, 8>;
}

template <typename T, int GATES>
static entry_kernel entry_of_chunks(int chunks, int tiles)
{
    return chunks == 1   ? entry_of_tiles<T, GATES, 1>(tiles)
           : chunks == 2 ? entry_of_tiles<T, GATES, 2>(tiles)
                         : entry_of_tiles<T, GATES, 4>(tiles);
}

template <typename T>
static entry_kernel entry_of_gates(const persistent_shape &s)
{
    return s.gates == 4   ? entry_of_chunks<T, 4>(s.chunks, s.rows / 8)
           : s.gates == 3 ? entry_of_chunks<T, 3>(s.chunks, s.rows / 8)
                          : entry_of_chunks<T, 1>(s.chunks, s.rows / 8);
}

static persistent_entry entry_of(const persistent_shape &s)
{
    const entry_kernel kernel = s.dtype == STRATA_FP16 ? entry_of_gates<__half>(s)
                                                       : entry_of_gates<__nv_bfloat16>(s);
    return {(const void *)kernel, PERSISTENT_UNITS, PERSISTENT_THREADS, 0};
}

/* ---- how a batch is divided
 * ------------------------------------------------------------ */

static int plan(const strata_node *n, int gates, int64_t hidden, int directions,
                int64_t batch, persistent_shape *out)
{
    const int64_t once = PERSISTENT_CHUNK * PERSISTENT_WARPS; /* depth of a chunk each */
    *out = {.dtype = n->in[0].dtype,
            .gates = gates,
            .chunks = hidden <= once       ? 1
                      : hidden <= 2 * once ? 2
                                           : 4};
    return persistent_divide(n, hidden, directions, batch, MOST_ROWS, entry_of, out);
}

/* ---- weights
 * --------------------------------------------------------------------------- */

static size_t pack_size(const persistent_shape *s, int64_t hidden)
{
    const int halves = s->gates > 2 ? 2 : 1;
    return (size_t)(hidden / PERSISTENT_UNITS) * PERSISTENT_WARPS * (size_t)s->chunks *
           2 * (size_t)halves * 32 * sizeof(uint4);
}

/* A word of two elements each. */
template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    pack_kernel(uint32_t *to, int64_t words, const float *r, int gates, int hidden,
                int chunks)
{
    const int halves = gates > 2 ? 2 : 1;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < words;
         i += (int64_t)gridDim.x * CUDA_BLOCK) {
        const int word = (int)(i % 4), lane = (int)(i / 4 % 32);
        const int gate = (int)(i / 128 % halves) * 2 + word % 2;
        const int64_t rest = i / 128 / halves, all = rest / 2;
        const int chunk = (int)(all % chunks);
        const int warp = (int)(all / chunks % PERSISTENT_WARPS);
        const int64_t unit =
            all / chunks / PERSISTENT_WARPS * PERSISTENT_UNITS + lane / 4;
        const int k = (chunk * PERSISTENT_WARPS + warp) * PERSISTENT_CHUNK +
                      lane % 4 * 8 + (int)(rest % 2) * 4 + word / 2 * 2;
        uint32_t both = 0;
        for (int e = 0; e < 2 && gate < gates && k < hidden; e++)
            both |= (uint32_t)persistent_bits(
                        r[((int64_t)gate * hidden + unit) * hidden + k + e], T())
                    << 16 * e;
        to[i] = both;
    }
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    narrow_kernel(uint16_t *to, const float *from, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * CUDA_BLOCK)
        to[i] = persistent_bits(from[i], T());
}

static int pack_weights(const strata_node *n, const persistent_shape *s, const float *r,
                        int64_t hidden, void *to)
{
    const int64_t words = (int64_t)(pack_size(s, hidden) / sizeof(uint32_t));
    const cudaStream_t stream = (cudaStream_t)n->stream;
    const unsigned blocks = layer_blocks(words, CUDA_BLOCK);
    if (s->dtype == STRATA_FP16)
        pack_kernel<__half><<<blocks, CUDA_BLOCK, 0, stream>>>(
            (uint32_t *)to, words, r, s->gates, (int)hidden, s->chunks);
    else
        pack_kernel<__nv_bfloat16><<<blocks, CUDA_BLOCK, 0, stream>>>(
            (uint32_t *)to, words, r, s->gates, (int)hidden, s->chunks);
    return persistent_packed(n);
}

extern "C" int persistent_narrow(const strata_node *n, const persistent_shape *s,
                                 const float *from, int64_t count, void *to)
{
    const cudaStream_t stream = (cudaStream_t)n->stream;
    const unsigned blocks = layer_blocks(count, CUDA_BLOCK);
    if (count > 0 && s->dtype == STRATA_FP16)
        narrow_kernel<__half>
            <<<blocks, CUDA_BLOCK, 0, stream>>>((uint16_t *)to, from, count);
    else if (count > 0)
        narrow_kernel<__nv_bfloat16>
            <<<blocks, CUDA_BLOCK, 0, stream>>>((uint16_t *)to, from, count);
    return persistent_packed(n);
}

/* ---- a layer
 * --------------------------------------------------------------------------- */

static int launch(const strata_run *r, const persistent_shape *s,
                  const persistent_job *job)
{
    return persistent_enqueue(r, s, entry_of(*s), job);
}

extern "C" const persistent_kind persistent_warps = {
    .plan = plan, .pack_size = pack_size, .pack = pack_weights, .launch = launch};
