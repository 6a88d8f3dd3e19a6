/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistent kernel's weights and launches.
 */
#include "plugins/rnn/persistent.cuh"

#include "kernels/layer.cuh"

#define SLOTS_EMPTY 0xff /* each byte */
#define MOST_TILES 8     /* of 8 rows: 64 rows to a group */

typedef void (*persistent_entry)(persistent_job);

/* ---- which kernel ---------------------------------------------------------------------
 */

template <typename T, int GATES, int CHUNKS>
static persistent_entry entry_of_tiles(int tiles)
{
    return tiles == 1   ? persistent_kernel<T, GATES, CHUNKS, 1>
           : tiles == 2 ? persistent_kernel<T, GATES, CHUNKS, 2>
           : tiles == 4 ? persistent_kernel<T, GATES, CHUNKS, 4>
                        : persistent_kernel<T, GATES, CHUNKS, 8>;
}

template <typename T, int GATES>
static persistent_entry entry_of_chunks(int chunks, int tiles)
{
    return chunks == 1   ? entry_of_tiles<T, GATES, 1>(tiles)
           : chunks == 2 ? entry_of_tiles<T, GATES, 2>(tiles)
                         : entry_of_tiles<T, GATES, 4>(tiles);
}

template <typename T>
static persistent_entry entry_of_gates(const persistent_shape &s)
{
    return s.gates == 4   ? entry_of_chunks<T, 4>(s.chunks, s.tiles)
           : s.gates == 3 ? entry_of_chunks<T, 3>(s.chunks, s.tiles)
                          : entry_of_chunks<T, 1>(s.chunks, s.tiles);
}

static persistent_entry entry_of(const persistent_shape &s)
{
    return s.dtype == STRATA_FP16 ? entry_of_gates<__half>(s)
                                  : entry_of_gates<__nv_bfloat16>(s);
}

/* ---- how a batch is divided
 * ------------------------------------------------------------ */

/* Blocks of a shape that can be resident at once; 0: an error, which *e has. */
static int64_t resident(const persistent_shape &s, cudaError_t *e)
{
    const void *kernel = (const void *)entry_of(s);
    int device, processors, each;
    if ((*e = cudaGetDevice(&device)) ||
        (*e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                     device)) ||
        (*e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel,
                                                            PERSISTENT_THREADS, 0)))
        return 0;
    return (int64_t)processors * each;
}

/* As few rows to a group as let all of the batch run at once, for then each block waits
 * for the fewest; else 64, and further launches. */
extern "C" int persistent_plan(const strata_node *n, int gates, int64_t hidden,
                               int directions, int64_t batch, persistent_shape *out)
{
    const int64_t blocks = hidden / PERSISTENT_UNITS * directions;
    const int64_t once = PERSISTENT_CHUNK * PERSISTENT_WARPS; /* depth of a chunk each */
    cudaError_t e = cudaSuccess;
    out->dtype = n->in[0].dtype;
    out->gates = gates;
    out->chunks = hidden <= once ? 1 : hidden <= 2 * once ? 2 : 4;
    for (out->tiles = 1; out->tiles <= MOST_TILES; out->tiles *= 2) {
        const int64_t room = resident(*out, &e), rows = out->tiles * 8;
        const int64_t groups = (batch + rows - 1) / rows;
        if (e != cudaSuccess)
            return STRATA_FAIL(n, STRATA_EDEVICE, "persistent RNN: %s",
                               cudaGetErrorString(e));
        out->groups = (int)(groups < room / blocks ? groups : room / blocks);
        if (out->groups > 0 && (out->groups == groups || out->tiles == MOST_TILES))
            return STRATA_OK;
    }
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                       "%lld blocks cannot all run at once on this device",
                       (long long)blocks);
}

/* ---- weights
 * --------------------------------------------------------------------------- */

extern "C" size_t persistent_pack_size(const persistent_shape *s, int64_t hidden)
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

static int packed(const strata_node *n)
{
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

extern "C" int persistent_pack(const strata_node *n, const persistent_shape *s,
                               const float *r, int64_t hidden, void *to)
{
    const int64_t words = (int64_t)(persistent_pack_size(s, hidden) / sizeof(uint32_t));
    const cudaStream_t stream = (cudaStream_t)n->stream;
    const unsigned blocks = layer_blocks(words, CUDA_BLOCK);
    if (s->dtype == STRATA_FP16)
        pack_kernel<__half><<<blocks, CUDA_BLOCK, 0, stream>>>(
            (uint32_t *)to, words, r, s->gates, (int)hidden, s->chunks);
    else
        pack_kernel<__nv_bfloat16><<<blocks, CUDA_BLOCK, 0, stream>>>(
            (uint32_t *)to, words, r, s->gates, (int)hidden, s->chunks);
    return packed(n);
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
    return packed(n);
}

/* ---- a layer
 * --------------------------------------------------------------------------- */

extern "C" int persistent_launch(const strata_run *r, const persistent_shape *s,
                                 const persistent_job *job)
{
    const dim3 threads(PERSISTENT_THREADS);
    const size_t bytes = (size_t)(job->steps + 1) * sizeof(uint16_t) *
                         (size_t)persistent_slot(job->batch, job->hidden);
    const int rows = s->groups * s->tiles * 8;
    persistent_job j = *job;
    j.slot = persistent_slot(j.batch, j.hidden);
    void *arguments[] = {&j};
    cudaError_t e = cudaSuccess;
    for (int d = 0; d < j.directions && e == cudaSuccess; d++)
        e = cudaMemsetAsync(j.line[d].slots, SLOTS_EMPTY, bytes, layer_stream(r));
    for (j.first = 0; j.first < j.batch && e == cudaSuccess; j.first += rows) {
        const dim3 grid((unsigned)(j.hidden / PERSISTENT_UNITS),
                        (unsigned)(j.directions * s->groups));
        e = cudaLaunchCooperativeKernel((const void *)entry_of(*s), grid, threads,
                                        arguments, 0, layer_stream(r));
    }
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(r, STRATA_EDEVICE, "persistent RNN: %s",
                                          cudaGetErrorString(e));
}
