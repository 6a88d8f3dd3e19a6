/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching hopper.cuh's products: kernels as a table has them, how many blocks share a
 * tile's depth, matrices as the copy engine sees them.
 */
#ifndef PLUGINS_COMMON_PRODUCT_LAUNCH_CUH
#define PLUGINS_COMMON_PRODUCT_LAUNCH_CUH

#include "plugins/common/product/hopper.cuh"
#include "plugins/common/product/tensor_map.cuh"

#define PRODUCT_LEAST_STEPS 2   /* of a block that shares a tile's depth */
#define PRODUCT_LEAST_TILES 16  /* of a tactic whose blocks do not */
#define PRODUCT_MOST_TILES 1024 /* of one whose do */

struct product_launch {
    const void *kernel;
    int32_t rows, columns, threads, bytes;
    int32_t depth; /* of a piece of K, elements */
    int32_t box;   /* columns of B that a block loads at a time */
    int32_t panel; /* columns that it stores at a time */
    int32_t pair, splits, blocks, over;
};

template <class C>
static const product_launch launch_of = {
    .kernel = (const void *)product_kernel<C>,
    .rows = C::Rows,
    .columns = C::Columns,
    .threads = C::Threads,
    .bytes = C::Bytes,
    .depth = C::Depth,
    .box = C::Pair ? C::Columns / 2 : C::Columns,
    .panel = C::Panel,
    .pair = C::Pair,
    .splits = C::Splits,
    .blocks = C::Blocks,
    .over = C::Over,
};

/* A table's entry has these; NULL for what the tactic does not take. */
enum { PRODUCT_FP16, PRODUCT_BF16, PRODUCT_TF32, PRODUCT_TYPES };

#define PRODUCT_OF(type, ...) &launch_of<product_tile<product_floats<type>, __VA_ARGS__>>
#define PRODUCT_HALVES(...)                                                              \
    PRODUCT_OF(__half, __VA_ARGS__), PRODUCT_OF(__nv_bfloat16, __VA_ARGS__)
#define PRODUCT_EVERY(...)                                                               \
    {                                                                                    \
        PRODUCT_HALVES(__VA_ARGS__), PRODUCT_OF(float, __VA_ARGS__)                      \
    }

static inline int product_type(int32_t dtype)
{
    return dtype == STRATA_FP32   ? PRODUCT_TF32
           : dtype == STRATA_BF16 ? PRODUCT_BF16
                                  : PRODUCT_FP16;
}

/* Why the math mode does not allow it, or NULL. */
static inline const char *product_math_refusal(const strata_node *n)
{
    if (n->math != STRATA_MATH_TENSOR_OP)
        return "uses tensor cores; allow them with math = tensor_op";
    if (n->in[0].dtype == STRATA_FP32 && !strata_may_use_tf32(n))
        return "multiplies FP32 as TF32; allow that with math = tf32";
    return NULL;
}

/* Why a tactic leaves a product of that size to others; NULL: it does not. */
static inline const char *product_refusal(const product_launch &l, int64_t rows,
                                          int64_t columns)
{
    const int64_t across = (columns + l.columns - 1) / l.columns;
    const int64_t tiles = (rows + l.rows - 1) / l.rows * across;
    if (across * l.columns >= 2 * columns && l.columns > 32)
        return "half of its tiles' columns would be empty";
    if (tiles > INT32_MAX)
        return "so many tiles are for others";
    if (!l.splits)
        return tiles < PRODUCT_LEAST_TILES
                   ? "its tiles would leave most multiprocessors idle"
                   : NULL;
    return tiles > PRODUCT_MOST_TILES ? "its tiles are for smaller layers" : NULL;
}

/* Blocks that are to be beside each other on a multiprocessor need as much of its memory
 * shared as there is. */
static inline cudaError_t product_prepare(const product_launch &l)
{
    const cudaError_t e = cudaFuncSetAttribute(
        l.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, l.bytes);
    return e == cudaSuccess && l.blocks > 1
               ? cudaFuncSetAttribute(l.kernel,
                                      cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxShared)
               : e;
}

/* The matrices of a batch, for the copy engine. */
struct product_matrix {
    const void *data;
    int64_t columns, rows, row, batches, batch; /* row, batch: elements to the next */
};

/* Boxes of box_rows x box_columns of them. */
static inline bool map_matrix(CUtensorMap *map, product_matrix x, int32_t dtype,
                              int32_t box_rows, int32_t box_columns)
{
    if (x.rows <= 1)
        x.row = x.columns;
    if (x.batches <= 1)
        x.batch = x.rows * x.row;
    const uint64_t dims[3] = {(uint64_t)x.columns, (uint64_t)x.rows, (uint64_t)x.batches};
    const int64_t strides[2] = {x.row, x.batch};
    const uint32_t box[3] = {(uint32_t)box_columns, (uint32_t)box_rows, 1};
    const int64_t bytes = ((x.batches - 1) * x.batch + (x.rows - 1) * x.row + x.columns) *
                          tensor_map_size(dtype);
    return tensor_map_boxes(map, x.data, dtype, 3, dims, strides, box, bytes);
}

/* Results and addend of a job that has all else but its tiles. */
static inline bool map_results(product_job *job, const product_launch &l, int32_t dtype,
                               int64_t batches)
{
    const product_matrix d = {job->to,     job->n,  job->m,
                              job->to_row, batches, job->to_batch};
    const product_matrix c = {job->addend,     job->n,  job->m,
                              job->addend_row, batches, job->addend_batch};
    return map_matrix(&job->d, d, dtype, 64, l.panel) &&
           (!job->addend || map_matrix(&job->c, c, dtype, 64, l.panel));
}

/* Blocks that share the depth of a tile: as many as there are multiprocessors for. */
static inline int32_t product_split_of(const product_launch &l, int32_t multiprocessors,
                                       int64_t tiles, int32_t steps)
{
    int32_t split = 1;
    while (l.splits && 2 * split <= PRODUCT_SPLIT &&
           2 * split * PRODUCT_LEAST_STEPS <= steps &&
           2 * split * tiles <= (int64_t)multiprocessors * l.blocks)
        split *= 2;
    return split;
}

static inline cudaError_t launch_clusters(const product_job &job, const product_launch &l,
                                          int32_t cluster, int64_t blocks,
                                          cudaStream_t stream)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = (unsigned)cluster;
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)l.threads);
    config.dynamicSmemBytes = (size_t)l.bytes;
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = cluster > 1 ? 2 : 1;
    void *arguments[] = {(void *)&job};
    return cudaLaunchKernelExC(&config, l.kernel, arguments);
}

/* Tiles, or pairs of them; the last of an odd number of rows makes pairs with itself. */
static inline int64_t product_units(const product_launch &l, int32_t rows,
                                    int32_t columns)
{
    return l.pair ? rows / 2 * (int64_t)columns + rows % 2 * ((columns + 1) / 2)
                  : rows * (int64_t)columns;
}

/* Rows of tiles, or of pairs of them, of the last PRODUCT_GROUP, but at least one. */
static inline int64_t product_low(const product_launch &l, int32_t rows)
{
    const int32_t high = l.pair ? rows / 2 : rows;
    return high > 0 ? (high - 1) % PRODUCT_GROUP + 1 : 1;
}

/* Of a job but its tiles, for `batches` products. */
static inline cudaError_t product_run(product_job *job, const product_launch &l,
                                      int64_t batches, int32_t multiprocessors,
                                      cudaStream_t stream)
{
    job->row_tiles = (job->m + l.rows - 1) / l.rows;
    job->column_tiles = (job->n + l.columns - 1) / l.columns;
    const int64_t each = product_units(l, job->row_tiles, job->column_tiles);
    const int64_t units = each * batches;
    job->units = (int32_t)units;
    job->each = divisor_of(each);
    job->across = divisor_of(PRODUCT_GROUP * (int64_t)job->column_tiles);
    job->low = divisor_of(product_low(l, job->row_tiles));
    job->split = product_split_of(l, multiprocessors, units, job->steps);
    job->plain =
        job->addend && !job->scale && job->real >= job->n && job->activation.kind < 0;
    const int32_t cluster = l.pair ? 2 : job->split;
    const int64_t room = (int64_t)multiprocessors * l.blocks / cluster;
    const int64_t most = job->split > 1 || l.over ? units : room;
    return launch_clusters(*job, l, cluster, (units < most ? units : most) * cluster,
                           stream);
}

#endif /* PLUGINS_COMMON_PRODUCT_LAUNCH_CUH */
