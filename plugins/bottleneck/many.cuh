/* SPDX-License-Identifier: Apache-2.0
 *
 * What the impls for many pixels do alike on the host: a table of a job's functions says
 * how each of them goes.
 */
#ifndef PLUGINS_BOTTLENECK_MANY_CUH
#define PLUGINS_BOTTLENECK_MANY_CUH

#include "plugins/bottleneck/accept.cuh"
#include "plugins/bottleneck/impls.cuh"

enum { MANY_ROOM = 32 << 20 }; /* of L2, bytes: what is half of it at least */

template <class Job>
struct many_way {
    const void *kernel;
    void (*pack)(bottleneck_weights w, int panels, int parts, uint8_t *matrices);
    int32_t cluster, threads;
    int64_t least; /* of `work`: less is for others */
    /* Why channels are too many or too few, or NULL; sizes that fit into an int. */
    const char *(*refuse)(const bottleneck_shape &s);
    void (*plan)(Job *job, const bottleneck_sizes &s); /* what is known without a batch */
    int64_t (*work)(const Job &job);                   /* of an image */
    int32_t (*matrices)(const Job &job);               /* of weights, 64 by 64 */
    int32_t (*biases)(const Job &job);                 /* behind the matrices */
    int32_t (*shared)(const Job &job);                 /* bytes of a block */
    /* Of a launch, where the device has room for so many at once. */
    int32_t (*clusters)(Job *job, int64_t images, int32_t clusters);
    bool (*map)(Job *job, const void *x, int64_t images, int32_t channels);
};

template <class Job>
static int64_t many_matrices(const many_way<Job> &way, const Job &job)
{
    return way.matrices(job) * (int64_t)BOTTLENECK_PIECE;
}

template <class Job>
static cudaLaunchConfig_t many_config(const many_way<Job> &way, const Job &job,
                                      int32_t clusters,
                                      cudaLaunchAttribute (&attributes)[2])
{
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = (unsigned)way.cluster;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)(clusters * way.cluster));
    config.blockDim = dim3((unsigned)way.threads);
    config.dynamicSmemBytes = (size_t)way.shared(job);
    config.attrs = attributes;
    config.numAttrs = way.cluster > 1 ? 2 : 1;
    return config;
}

/* ---- what it takes ---------------------------------------------------------------- */

template <class Job>
static int many_accept(const many_way<Job> &way, const strata_node *n)
{
    bottleneck_shape s = {};
    Job job = {};
    const int status = bottleneck_take(n, way.refuse);
    if (status != STRATA_OK || bottleneck_resolve(n, &s) != STRATA_OK)
        return status;
    way.plan(&job, sizes_of(s));
    return n->in[0].dims[0] * way.work(job) < way.least
               ? refuse(n, "it is for more pixels")
               : STRATA_OK;
}

/* ---- setting up ------------------------------------------------------------------- */

template <class Job>
static int many_pack(const many_way<Job> &way, const strata_node *n,
                     const bottleneck_shape &s, const Job &job, void **packed)
{
    const int64_t biases = way.biases(job) * (int64_t)sizeof(float);
    const int status = alloc_packed(n, many_matrices(way, job) + biases, packed);
    if (status != STRATA_OK)
        return status;
    way.pack<<<(unsigned)way.matrices(job), CUDA_BLOCK, 0, (cudaStream_t)n->stream>>>(
        weights_of(n, s), job.panels, job.parts, (uint8_t *)*packed);
    return packed_status(n);
}

template <class Job>
static int many_setup(const many_way<Job> &way, const strata_node *n, void *state)
{
    many_state<Job> *to = (many_state<Job> *)state;
    bottleneck_shape s = {};
    Job job = {};
    cudaLaunchAttribute attributes[2] = {};
    int status = bottleneck_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    way.plan(&job, sizes_of(s));
    bottleneck_set_tails(&job, n);
    memcpy(to->job, &job, sizeof job);
    to->clusters = device_attribute(cudaDevAttrMultiProcessorCount);
    const cudaLaunchConfig_t config = many_config(way, job, 1, attributes);
    status = way.cluster > 1
                 ? clusters_at_once(n, way.kernel, config, way.cluster, &to->clusters)
                 : allow_memory(n, way.kernel, config.dynamicSmemBytes);
    return status == STRATA_OK ? many_pack(way, n, s, job, &to->packed) : status;
}

/* ---- running ---------------------------------------------------------------------- */

template <class Job>
static int many_run(const many_way<Job> &way, const strata_run *r)
{
    const many_state<Job> *s = (const many_state<Job> *)r->state;
    const strata_tensor *x = &r->in[0];
    Job job;
    cudaLaunchAttribute attributes[2] = {};
    memcpy(&job, s->job, sizeof job);
    const int32_t clusters = way.clusters(&job, x->dims[0], s->clusters);
    cudaLaunchConfig_t config = many_config(way, job, clusters, attributes);
    config.stream = layer_stream(r);
    job.weights = (const uint8_t *)s->packed;
    job.bias = (const float *)(job.weights + many_matrices(way, job));
    job.addend = r->n_in > 1 ? (const __half *)r->in[1].data : NULL;
    job.y = (__half *)r->out[0].data;
    if (clusters == 0)
        return STRATA_OK;
    return way.map(&job, x->data, x->dims[0], (int32_t)x->dims[1])
               ? launch_job(r, config, way.kernel, &job)
               : no_map(r);
}

/* An impl's functions. */
#define MANY_WAY(name, way)                                                              \
    int name##_accept(const strata_node *n)                                              \
    {                                                                                    \
        return many_accept(way, n);                                                      \
    }                                                                                    \
    int name##_setup(const strata_node *n, void *state)                                  \
    {                                                                                    \
        return many_setup(way, n, state);                                                \
    }                                                                                    \
    int name##_run(const strata_run *r)                                                  \
    {                                                                                    \
        return many_run(way, r);                                                         \
    }

#endif /* PLUGINS_BOTTLENECK_MANY_CUH */
