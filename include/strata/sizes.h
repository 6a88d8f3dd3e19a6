/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes that vary: the names of a network's [profile] that stand for several sizes, what
 * a run at any of these takes, and the sizes of a context's next runs. docs/serving.md
 * tells how such runs go.
 */
#ifndef STRATA_SIZES_H
#define STRATA_SIZES_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A name of the network's [profile] that stands for several sizes. A run has any of least
 * to most. Texts and sizes live as long as the engine. */
typedef struct strata_dimension {
    size_t struct_size;
    const char *name;
    int64_t least, most;
    const int64_t *sizes; /* that plans are made for, ascending; the last is most */
    int32_t n_sizes;
    int32_t is_batch; /* rows are apart: run at the next larger of sizes, the rest unused */
} strata_dimension;
/* In the order of the network's file. */
STRATA_API int strata_engine_dimensions(const strata_engine *engine);
STRATA_API int strata_engine_dimension(const strata_engine *engine, int index,
                                       strata_dimension *out, strata_error *err);

/* What a run at given sizes takes. */
typedef struct strata_estimate {
    size_t struct_size;
    double predicted_us; /* by the costs that the plan was made from, scaled by the model */
    int64_t arena_bytes; /* of a context's memory in use */
    int32_t planned;     /* a plan was made for these sizes, the batch rounded up */
    int32_t n_sizes;
    int64_t sizes[8]; /* those whose plan it goes by, one for each dimension */
} strata_estimate;
/* sizes: one for each of strata_engine_dimensions, in their order. Takes as long as
 * planning does where no plan was made for them. EINVAL: outside of their ranges;
 * EUNSUPPORTED names the layer that cannot have such a shape. Any thread. */
STRATA_API int strata_engine_estimate(const strata_engine *engine, const int64_t *sizes,
                                      int n_sizes, strata_estimate *out,
                                      strata_error *err);

/* The shape that an input has in the next runs, and with it the sizes of the names that
 * stand in it: they hold for all inputs, and outputs follow. At first all have their
 * largest. The runs' first use of sizes that no plan was made for makes a version of a
 * plan, which takes about as long as loading an engine: in the next call that copies, runs
 * or asks for a binding. That call then fails with EUNSUPPORTED for a layer that cannot
 * have the shape. A dim that is a sum of names sets none of them. EINVAL: no such input,
 * another rank, or a dim that is fixed or outside of its range; nothing has changed then.
 */
STRATA_API int strata_context_set_shape(strata_context *context, int index, int rank,
                                        const int64_t *dims, strata_error *err);
/* The same of one name. */
STRATA_API int strata_context_set_dimension(strata_context *context, const char *name,
                                            int64_t extent, strata_error *err);
/* strata_engine_binding as the next run has it: dims and bytes of the sizes and rows that
 * are set. Makes a version of a plan where that is needed. */
STRATA_API int strata_context_binding(strata_context *context, int index,
                                      strata_binding *out, strata_error *err);
#ifdef __cplusplus
}
#endif

#endif /* STRATA_SIZES_H */
