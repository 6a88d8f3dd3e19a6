/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that break the stream's and the device's rules, one each; y = 2x otherwise.
 * Good is right, so that the checker's silence means something.
 */
#include <strata/plugin.h>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

/* ---- streams
 * ---------------------------------------------------------------------------- */

static __global__ void twice(float *y, const float *x, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i];
}

struct job {
    float *y;
    const float *x;
    int64_t n;
    unsigned blocks;
    cudaStream_t stream;
};

static job job_of(const strata_run *r)
{
    const int64_t n = r->out[0].count;
    return {(float *)r->out[0].data, (const float *)r->in[0].data, n,
            (unsigned)((n + 255) / 256), (cudaStream_t)r->stream};
}

static int launch(const strata_run *r, const job &j, cudaStream_t stream)
{
    twice<<<j.blocks, 256, 0, stream>>>(j.y, j.x, j.n);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "twice: %s", cudaGetErrorString(e));
}

static int good(const strata_run *r)
{
    const job j = job_of(r);
    return launch(r, j, j.stream);
}

static int default_stream(const strata_run *r)
{
    const job j = job_of(r);
    return launch(r, j, 0);
}

static int allocates(const strata_run *r)
{
    const job j = job_of(r);
    void *spare = NULL;
    if (cudaMalloc(&spare, 1 << 20) != cudaSuccess)
        return STRATA_FAIL(r, STRATA_ENOMEM, "cudaMalloc");
    const int status = launch(r, j, j.stream);
    cudaFree(spare);
    return status;
}

static int synchronises(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    cudaStreamSynchronize(j.stream);
    return status;
}

static int synchronises_device(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    cudaDeviceSynchronize();
    return status;
}

static int copies(const strata_run *r)
{
    const job j = job_of(r);
    float first = 0;
    cudaMemcpy(&first, j.x, sizeof first, cudaMemcpyDeviceToHost);
    return launch(r, j, j.stream);
}

static int sets(const strata_run *r)
{
    const job j = job_of(r);
    cudaMemset(j.y, 0, sizeof *j.y);
    return launch(r, j, j.stream);
}

static int bad_launch(const strata_run *r)
{
    const job j = job_of(r);
    twice<<<j.blocks, 4096, 0, j.stream>>>(j.y, j.x, j.n);
    return STRATA_OK;
}

static int one_too_many(const strata_run *r)
{
    job j = job_of(r);
    j.n++;
    j.blocks++;
    return launch(r, j, j.stream);
}

static int one_too_few(const strata_run *r)
{
    job j = job_of(r);
    j.n--;
    return j.n ? launch(r, j, j.stream) : STRATA_OK;
}

static int modifies_input(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    cudaMemsetAsync((void *)j.x, 0, sizeof *j.x, j.stream);
    return status;
}

static int wild_pointer(const strata_run *r)
{
    job j = job_of(r);
    j.y = (float *)(uintptr_t)64;
    return launch(r, j, j.stream);
}

/* An illegal address, where the first element is no number: a request that loses the
 * device, of a network that has been prepared well. */
static __global__ void twice_unless_poisoned(float *y, const float *x, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float *to = isnan(*x) ? (float *)(uintptr_t)64 : y;
    if (i < n)
        to[i] = 2 * x[i];
}

static int poisoned(const strata_run *r)
{
    const job j = job_of(r);
    twice_unless_poisoned<<<j.blocks, 256, 0, j.stream>>>(j.y, j.x, j.n);
    return STRATA_OK;
}

static int other_stream(const strata_run *r)
{
    const job j = job_of(r);
    static cudaStream_t mine;
    if (!mine && cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking) != cudaSuccess)
        return STRATA_FAIL(r, STRATA_EDEVICE, "a stream");
    return launch(r, j, mine);
}

static int leaks(const strata_node *n, const void *state, void *ctx)
{
    void *spare = NULL;
    (void)state;
    (void)ctx;
    return cudaMalloc(&spare, 1 << 16) == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_ENOMEM, "cudaMalloc");
}

/* ---- memory
 * ----------------------------------------------------------------------------- */

static __global__ void set_one(float *p, float value)
{
    *p = value;
}

static int workspace_overrun(const strata_run *r)
{
    const job j = job_of(r);
    float *work = (float *)r->workspace;
    set_one<<<1, 1, 0, j.stream>>>(work + j.n, 0);
    return launch(r, j, j.stream);
}

static __global__ void add_stale(float *y, const float *work)
{
    if (!isnan(*work))
        *y += 1;
}

static int stale_workspace(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    add_stale<<<1, 1, 0, j.stream>>>(j.y, (const float *)r->workspace);
    return status;
}

static size_t workspace(const strata_node *n)
{
    return (size_t)n->out[0].count * sizeof(float);
}

static __global__ void add_next(float *y, const float *x, int64_t n)
{
    y[n - 1] += 0 * x[n];
}

static int reads_past(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    add_next<<<1, 1, 0, j.stream>>>(j.y, j.x, j.n);
    return status;
}

/* Vectors of 2 channels: the second of the last is a pad lane if C is odd. `pad` goes
 * there, and what lay there in x, times `mix`, to its neighbour. */
static __global__ void twice_half2(__half *y, const __half *x, int64_t n, int64_t plane,
                                   int64_t channels, float pad, float mix)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int64_t blocks = (channels + 1) / 2, block = i / plane % blocks;
    const bool last = block * 2 + 1 == channels;
    const float low = __half2float(x[2 * i]), high = __half2float(x[2 * i + 1]);
    y[2 * i] = __float2half(2 * low + (last ? mix * high : 0));
    y[2 * i + 1] = __float2half(last ? pad : 2 * high);
}

static int launch_half2(const strata_run *r, float pad, float mix)
{
    const strata_tensor *t = &r->out[0];
    const int64_t n = t->size / 2;
    int64_t plane = 1;
    for (int d = 2; d < t->rank; d++)
        plane *= t->dims[d];
    twice_half2<<<(unsigned)((n + 255) / 256), 256, 0, (cudaStream_t)r->stream>>>(
        (__half *)t->data, (const __half *)r->in[0].data, n, plane, t->dims[1], pad, mix);
    return STRATA_OK;
}

static int pad_dirty(const strata_run *r)
{
    return launch_half2(r, 1, 0);
}

static int pad_read(const strata_run *r)
{
    return launch_half2(r, 0, 1);
}

/* ---- values
 * ----------------------------------------------------------------------------- */

static int channel_17(const strata_run *r)
{
    job j = job_of(r);
    j.n -= r->out[0].dims[1] == 17;
    return launch(r, j, j.stream);
}

static int batch_3(const strata_run *r)
{
    job j = job_of(r);
    j.n -= r->out[0].dims[0] == 3 ? j.n / 3 : 0;
    return launch(r, j, j.stream);
}

/* ---- repetition
 * ------------------------------------------------------------------------- */

static __device__ unsigned tickets;

static __global__ void add_ticket(float *y)
{
    *y += 1e-6f * (float)(atomicAdd(&tickets, 1) % 3);
}

static int nondeterministic(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    add_ticket<<<1, 1, 0, j.stream>>>(j.y);
    return status;
}

#define SHARED (1 << 16)
static __device__ float shared_buffer[SHARED];

/* Slow enough for another stream to come between. */
static __global__ void by_shared(float *y, const float *x, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const long long start = clock64();
    while (clock64() - start < 20000)
        ;
    if (i < n && y)
        y[i] = 2 * shared_buffer[i % SHARED];
    else if (i < n)
        shared_buffer[i % SHARED] = x[i];
}

static int shares_buffer(const strata_run *r)
{
    const job j = job_of(r);
    if (j.n > SHARED)
        return launch(r, j, j.stream);
    by_shared<<<j.blocks, 256, 0, j.stream>>>(NULL, j.x, j.n);
    by_shared<<<j.blocks, 256, 0, j.stream>>>(j.y, NULL, j.n);
    return STRATA_OK;
}

/* What a ctx keeps, of its opening or of its first run. */
struct kept {
    cudaStream_t stream;
    float *y;
};

static int keep_stream(const strata_node *n, const void *state, void *ctx)
{
    (void)state;
    ((kept *)ctx)->stream = (cudaStream_t)n->stream;
    return STRATA_OK;
}

static int keeps_stream(const strata_run *r)
{
    return launch(r, job_of(r), ((const kept *)r->ctx)->stream);
}

static int keeps_pointer(const strata_run *r)
{
    kept *k = (kept *)r->ctx;
    job j = job_of(r);
    k->y = k->y ? k->y : j.y;
    j.y = k->y;
    return launch(r, j, j.stream);
}

static int copies_to_host(const strata_run *r)
{
    const job j = job_of(r);
    float first = 0; /* pageable memory: the copy is complete on return */
    cudaMemcpyAsync(&first, j.x, sizeof first, cudaMemcpyDeviceToHost, j.stream);
    return launch(r, j, j.stream);
}

static int waits_for_event(const strata_run *r)
{
    const job j = job_of(r);
    const int status = launch(r, j, j.stream);
    cudaEvent_t done;
    if (cudaEventCreate(&done) != cudaSuccess)
        return STRATA_FAIL(r, STRATA_EDEVICE, "an event");
    cudaEventRecord(done, j.stream);
    cudaEventSynchronize(done);
    cudaEventDestroy(done);
    return status;
}

static int reference_run(const strata_node *n, const double *const *in,
                         const double *const *weight, double *const *out)
{
    (void)weight;
    int64_t count = 1;
    for (int d = 0; d < n->out[0].rank; d++)
        count *= n->out[0].dims[d];
    for (int64_t i = 0; i < count; i++)
        out[0][i] = 2 * in[0][i];
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference reference = {sizeof(strata_reference), 0,
                                               reference_run};
    const char *known = STRATA_REFERENCE_V1;
    while (*id && *id == *known)
        id++, known++;
    return *id == *known ? &reference : NULL;
}

static const strata_row linear[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_row vectors[] = {{{STRATA_F16_NC2HW2}, {STRATA_SAME}}};

/* What follows run_ are further fields of the impl, before `run`. */
#define LAYER(symbol, name_, flags_, rows_, run_, ...)                                   \
    static const strata_impl symbol##_impls[] = {                                        \
        {.id = 1,                                                                        \
         .device = STRATA_CUDA,                                                          \
         .flags = flags_,                                                                \
         .name = "cuda",                                                                 \
         .rows = STRATA_ARRAY(rows_),                                                    \
         __VA_ARGS__ __VA_OPT__(, ).run = run_},                                         \
    };                                                                                   \
    static const strata_layer symbol = {                                                 \
        .struct_size = sizeof(strata_layer),                                             \
        .version = 1,                                                                    \
        .name = name_,                                                                   \
        .doc = "y = 2x",                                                                 \
        .min_in = 1,                                                                     \
        .max_in = 1,                                                                     \
        .n_out = 1,                                                                      \
        .impls = STRATA_ARRAY(symbol##_impls),                                           \
        .extension = extension,                                                          \
    };
#define PLAIN(symbol, name_, run_, ...) LAYER(symbol, name_, 0, linear, run_, __VA_ARGS__)
#define STRIDED (STRATA_STRIDED_IN | STRATA_STRIDED_OUT)

PLAIN(layer_good, "Good", good)
PLAIN(layer_default_stream, "DefaultStream", default_stream)
PLAIN(layer_allocates, "Allocates", allocates)
PLAIN(layer_synchronises, "Synchronises", synchronises)
PLAIN(layer_synchronises_device, "SynchronisesDevice", synchronises_device)
PLAIN(layer_waits_for_event, "WaitsForEvent", waits_for_event)
PLAIN(layer_copies, "Copies", copies)
PLAIN(layer_copies_to_host, "CopiesToHost", copies_to_host)
PLAIN(layer_sets, "Sets", sets)
PLAIN(layer_bad_launch, "BadLaunch", bad_launch)
PLAIN(layer_other_stream, "OtherStream", other_stream)
PLAIN(layer_keeps_stream, "KeepsStream", keeps_stream, .ctx_size = sizeof(kept),
      .ctx_open = keep_stream)
PLAIN(layer_one_too_many, "OneTooMany", one_too_many)
PLAIN(layer_one_too_few, "OneTooFew", one_too_few)
PLAIN(layer_reads_past, "ReadsPast", reads_past)
PLAIN(layer_modifies_input, "ModifiesInput", modifies_input)
PLAIN(layer_workspace_overrun, "WorkspaceOverrun", workspace_overrun,
      .workspace = workspace)
PLAIN(layer_stale_workspace, "StaleWorkspace", stale_workspace, .workspace = workspace)
PLAIN(layer_wild_pointer, "WildPointer", wild_pointer)
PLAIN(layer_poisoned, "Poisoned", poisoned)
LAYER(layer_pad_dirty, "PadDirty", 0, vectors, pad_dirty)
LAYER(layer_pad_read, "PadRead", STRATA_PAD_IGNORED, vectors, pad_read)
LAYER(layer_ignores_strides, "IgnoresStrides", STRIDED, linear, good)
PLAIN(layer_channel_17, "Channel17", channel_17)
PLAIN(layer_batch_3, "Batch3", batch_3)
PLAIN(layer_nondeterministic, "Nondeterministic", nondeterministic)
PLAIN(layer_shares_buffer, "SharesBuffer", shares_buffer)
PLAIN(layer_keeps_pointer, "KeepsPointer", keeps_pointer, .ctx_size = sizeof(kept))
PLAIN(layer_leaks, "Leaks", good, .ctx_open = leaks)

static const strata_layer *const layers[] = {
    &layer_good,
    &layer_default_stream,
    &layer_allocates,
    &layer_synchronises,
    &layer_synchronises_device,
    &layer_waits_for_event,
    &layer_copies,
    &layer_copies_to_host,
    &layer_sets,
    &layer_bad_launch,
    &layer_other_stream,
    &layer_keeps_stream,
    &layer_one_too_many,
    &layer_one_too_few,
    &layer_reads_past,
    &layer_modifies_input,
    &layer_workspace_overrun,
    &layer_stale_workspace,
    &layer_wild_pointer,
    &layer_poisoned,
    &layer_pad_dirty,
    &layer_pad_read,
    &layer_ignores_strides,
    &layer_channel_17,
    &layer_batch_3,
    &layer_nondeterministic,
    &layer_shares_buffer,
    &layer_keeps_pointer,
    &layer_leaks,
};
STRATA_MODULE("org.faulty", "1.0.0",
              "Good,DefaultStream,Allocates,Synchronises,SynchronisesDevice,"
              "WaitsForEvent,Copies,CopiesToHost,Sets,BadLaunch,OtherStream,KeepsStream,"
              "OneTooMany,OneTooFew,ReadsPast,ModifiesInput,WorkspaceOverrun,"
              "StaleWorkspace,WildPointer,Poisoned,PadDirty,PadRead,IgnoresStrides,"
              "Channel17,Batch3,Nondeterministic,SharesBuffer,KeepsPointer,Leaks",
              layers)
