/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that break the stream's and the device's rules, one each; y = 2x otherwise.
 * Good is right, so that the checker's silence means something.
 */
#include <strata/plugin.h>

#include <cuda_runtime.h>

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

static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};

#define LAYER(symbol, name_, run_, open_)                                                \
    static const strata_impl symbol##_impls[] = {                                        \
        {.id = 1,                                                                        \
         .device = STRATA_CUDA,                                                          \
         .name = "cuda",                                                                 \
         .rows = STRATA_ARRAY(rows),                                                     \
         .ctx_open = open_,                                                              \
         .run = run_},                                                                   \
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

LAYER(layer_good, "Good", good, NULL)
LAYER(layer_default_stream, "DefaultStream", default_stream, NULL)
LAYER(layer_allocates, "Allocates", allocates, NULL)
LAYER(layer_synchronises, "Synchronises", synchronises, NULL)
LAYER(layer_synchronises_device, "SynchronisesDevice", synchronises_device, NULL)
LAYER(layer_copies, "Copies", copies, NULL)
LAYER(layer_sets, "Sets", sets, NULL)
LAYER(layer_bad_launch, "BadLaunch", bad_launch, NULL)
LAYER(layer_one_too_many, "OneTooMany", one_too_many, NULL)
LAYER(layer_one_too_few, "OneTooFew", one_too_few, NULL)
LAYER(layer_modifies_input, "ModifiesInput", modifies_input, NULL)
LAYER(layer_wild_pointer, "WildPointer", wild_pointer, NULL)
LAYER(layer_other_stream, "OtherStream", other_stream, NULL)
LAYER(layer_leaks, "Leaks", good, leaks)

static const strata_layer *const layers[] = {
    &layer_good,           &layer_default_stream,      &layer_allocates,
    &layer_synchronises,   &layer_synchronises_device, &layer_copies,
    &layer_sets,           &layer_bad_launch,          &layer_one_too_many,
    &layer_one_too_few,    &layer_modifies_input,      &layer_wild_pointer,
    &layer_other_stream,   &layer_leaks,
};
STRATA_MODULE("org.faulty", "1.0.0",
              "Good,DefaultStream,Allocates,Synchronises,SynchronisesDevice,Copies,Sets,"
              "BadLaunch,OneTooMany,OneTooFew,ModifiesInput,WildPointer,OtherStream,Leaks",
              layers)
