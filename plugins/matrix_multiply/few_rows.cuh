/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels of up to 16 rows share: reading B once, adding the sums of a cluster, and
 * being launched while the kernel before still runs.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_FEW_ROWS_CUH
#define PLUGINS_MATRIX_MULTIPLY_FEW_ROWS_CUH

#include <cooperative_groups.h>

#include "kernels/beside.cuh"
#include "plugins/matrix_multiply/cuda.cuh"

#define MOST_ROWS 16
#define THREADS 256
#define WARPS (THREADS / 32)
#define MOST_SPLIT 8

/* 16 bytes of B, which nobody reads again: past the L1, where A stays. Volatile, so that
 * it is not moved before a wait. */
static __device__ inline uint4 read_once(const void *from)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

/* Sums of the block, [count] in shared memory, to those of the cluster in its first. The
 * block's threads see them then. */
static __device__ inline bool add_ranks(float *own, int split, int count)
{
    if (split == 1) {
        __syncthreads();
        return true;
    }
#if __CUDA_ARCH__ >= 900
    auto cluster = cooperative_groups::this_cluster();
    const bool first = cluster.block_rank() == 0;
    cluster.sync();
    for (int i = threadIdx.x; i < count && first; i += THREADS) {
        float sum = own[i];
        for (int rank = 1; rank < split; rank++)
            sum += cluster.map_shared_rank(own, rank)[i];
        own[i] = sum;
    }
    cluster.sync();
    return first;
#else
    return true;
#endif
}

static __device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4],
                                           uint32_t b0, uint32_t b1, __half)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

static __device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4],
                                           uint32_t b0, uint32_t b1, __nv_bfloat16)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/* 8 elements of A, zeros past the depth. */
template <typename T>
static __device__ inline uint4 read_eight(const T *from, int64_t k, int64_t depth)
{
    return k < depth ? *(const uint4 *)(from + k) : make_uint4(0, 0, 0, 0);
}

/* ---- host ------------------------------------------------------------------------ */

static inline int refuse(const strata_node *n, const char *why)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
}

/* Rows begin at whole 16 bytes. */
static inline bool is_aligned(const matrix_product &p, const matrix &x, int64_t line,
                              int whole)
{
    bool aligned = line % whole == 0;
    for (int d = 0; d < p.dims; d++)
        aligned &= x.batch[d] % whole == 0;
    return aligned;
}

static inline int few_rows_ask(const strata_node *n, cudaDeviceAttr what, int32_t *answer)
{
    int device = 0, value = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&value, what, device);
    *answer = value;
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "asking for the device: %s",
                                          cudaGetErrorString(e));
}

static inline int few_rows_device(const strata_node *n, int32_t *multiprocessors)
{
    return few_rows_ask(n, cudaDevAttrMultiProcessorCount, multiprocessors);
}

/* Blocks of a cluster: enough that two a multiprocessor read, each at least `least` of
 * the depth. */
static inline int few_rows_split(int32_t multiprocessors, int32_t clusters,
                                 int64_t blocks, int64_t depth, int64_t least)
{
    int split = 1;
    while (clusters && 2 * split <= MOST_SPLIT && 2 * split * least <= depth &&
           blocks * split < 2 * (int64_t)multiprocessors)
        split *= 2;
    return split;
}

/* How a kernel of few rows is launched: job: a copy of it is its parameter; grid.z is a
 * cluster; shared: bytes. */
struct few_rows_kernel {
    const void *kernel, *job;
    dim3 grid;
    unsigned threads;
    int32_t shared, overlaps;
    bool one; /* row: all kernels of one row leave room beside them */
    const char *name;
};

static inline cudaError_t few_rows_start(const few_rows_kernel &k, cudaStream_t stream)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = attributes[1].val.clusterDim.y = 1;
    attributes[1].val.clusterDim.z = k.grid.z;
    config.gridDim = k.grid;
    config.blockDim = dim3(k.threads);
    config.dynamicSmemBytes = (size_t)k.shared;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = k.overlaps ? 2 : 0;
    void *arguments[] = {(void *)k.job};
    cudaError_t e = k.shared > 0 ? shared_allow(k.kernel, (size_t)k.shared) : cudaSuccess;
    if (e == cudaSuccess && k.one)
        e = shared_beside(k.kernel);
    return e == cudaSuccess ? cudaLaunchKernelExC(&config, k.kernel, arguments) : e;
}

static inline int few_rows_launch(const strata_run *r, const few_rows_kernel &k)
{
    const cudaError_t e = few_rows_start(k, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel matrix_multiply %s: %s (%s)",
                             k.name, cudaGetErrorString(e), cudaGetErrorName(e));
}

#endif /* PLUGINS_MATRIX_MULTIPLY_FEW_ROWS_CUH */
