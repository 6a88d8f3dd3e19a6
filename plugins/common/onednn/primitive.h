/* SPDX-License-Identifier: Apache-2.0
 *
 * What all oneDNN impls share. A layer only describes its primitive (onednn_describe);
 * choosing the kernel, packing weights, binding pointers and running are done here, so
 * an impl's callbacks are one line each.
 *
 * The primitive is made for one batch and one number of OpenMP threads, those of setup
 * or, where there is little to compute, one. It is immutable and shared by all contexts:
 * the scratchpad is the call's workspace and each context owns the dnnl_memory handles
 * that run fills with pointers.
 */
#ifndef PLUGINS_COMMON_ONEDNN_PRIMITIVE_H
#define PLUGINS_COMMON_ONEDNN_PRIMITIVE_H

#include <stdbool.h>

#include <strata/layers.h>

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

/* Where an argument of the primitive points during run. */
enum onednn_source {
    ONEDNN_NONE,
    ONEDNN_INPUT,
    ONEDNN_SECOND, /* input 1 */
    ONEDNN_THIRD,
    ONEDNN_OUTPUT,
    ONEDNN_WEIGHT, /* the packed copy, or the network's where its layout fits */
    ONEDNN_BIAS,   /* the layer's own bias weight */
    ONEDNN_EPILOGUE_SCALE,
    ONEDNN_EPILOGUE_BIAS,
    ONEDNN_EPILOGUE_RESIDUAL,
    ONEDNN_SCALE_OUT, /* a quantised layer's weight of that name */
    ONEDNN_WORKSPACE
};

/* source, weight, bias, output, workspace, an addend and three epilogue operands */
enum { ONEDNN_MAX_ARGUMENTS = 9 };

struct onednn_argument {
    int index; /* DNNL_ARG_* */
    enum onednn_source source;
};

struct onednn_arguments {
    int n;
    struct onednn_argument at[ONEDNN_MAX_ARGUMENTS];
};

/* What a layer asks of oneDNN, filled by its onednn_describe. */
struct onednn_request {
    union {
        dnnl_primitive_kind_t kind;          /* the first member of each */
        dnnl_convolution_desc_t convolution; /* deconvolution's too */
        dnnl_inner_product_desc_t inner_product;
        dnnl_matmul_desc_t matmul;
        dnnl_pooling_v2_desc_t pooling;
        dnnl_lrn_desc_t lrn;
    } op;
    dnnl_memory_desc_t output;
    dnnl_memory_desc_t weight; /* as the network stores it; ndims 0: the layer has none */
    enum onednn_source bias;
    enum onednn_source second; /* what stands for a weight that the layer has not */
    dnnl_memory_desc_t addend; /* input 2, added before the epilogue; ndims 0: none */
    float scale;               /* of the sum and the bias; 0: none */
    const strata_quantized *quantized; /* what becomes of sums of 8 bits; or NULL */
    const float *factors;              /* with it: of the sums */
    float *own_factors;                /* they, to be freed with the candidate; or NULL */
    int64_t n_factors;                 /* one, or one each along dim `factors_dim` */
    int factors_dim;
    bool is_small; /* what a second thread would do takes less than to have it */
};

typedef int (*onednn_describe)(const strata_node *n, struct onednn_request *request);

/* A chosen kernel and the arguments its primitive will take. */
struct onednn_candidate {
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t descriptor;
    struct onednn_request request;
    struct onednn_arguments arguments;
    int threads; /* that it was chosen for */
};

struct onednn_state {
    dnnl_engine_t engine;
    dnnl_primitive_t primitive;
    void *weight;     /* packed, the core's memory; NULL: use the network's */
    void *divisor;    /* scale_out, the core's memory; NULL: none */
    int64_t batch;    /* images the primitive was made for */
    bool each;        /* it runs for each image of a larger batch */
    size_t workspace; /* bytes */
    int threads;
    struct onednn_arguments arguments;
};

struct onednn_context {
    dnnl_stream_t stream;
    bool ran; /* once at least: some kernels are made when they are first needed */
    int n_arguments;
    dnnl_exec_arg_t arguments[ONEDNN_MAX_ARGUMENTS]; /* in the state's order */
};

/* describe.c */
/* STRATA_OK, or the message "WHAT: oneDNN says ..." */
int onednn_check(const strata_node *n, dnnl_status_t status, const char *what);
/* Whether its kernels may use these instructions: the CPU has them, and
 * ONEDNN_MAX_CPU_ISA leaves them. */
bool onednn_has(dnnl_cpu_isa_t isa);

#define ONEDNN_ROOM_MIB 16 /* making a kernel took at most 9 */
#define ONEDNN_NO_ROOM "out of memory: oneDNN may take %d MiB to make a kernel"
/* Whether it can be made without running out of memory; ENOMEM where not. */
bool onednn_has_room(void);
int onednn_room(const strata_node *n);

/* Descriptor of an activation in its format. */
int onednn_tensor(const strata_node *n, const strata_tensor *t, dnnl_memory_desc_t *md);
/* Dense descriptor, last dim fastest. */
int onednn_dense(const strata_node *n, const int64_t *dims, int rank,
                 dnnl_memory_desc_t *md);
/* The same of INT8 elements. */
int onednn_dense_bytes(const strata_node *n, const int64_t *dims, int rank,
                       dnnl_memory_desc_t *md);
int onednn_any_bytes(const strata_node *n, const int64_t *dims, int rank,
                     dnnl_memory_desc_t *md);
/* Descriptor whose layout is the primitive's choice. */
int onednn_any(const strata_node *n, const int64_t *dims, int rank,
               dnnl_memory_desc_t *md);

void onednn_bind(struct onednn_arguments *list, int index, enum onednn_source source);

/* primitive.c */
/* Who supplies the primitive's bias: the layer's weight 1, else an unscaled epilogue. */
enum onednn_source onednn_bias_source(const strata_node *n);

/* Choose the kernel for a node, never a reference kernel; close it whatever the result.
 */
int onednn_candidate_open(const strata_node *n, onednn_describe describe,
                          struct onednn_candidate *c);
void onednn_candidate_close(struct onednn_candidate *c);
size_t onednn_candidate_workspace(const struct onednn_candidate *c); /* bytes */

int onednn_accept(const strata_node *n, onednn_describe describe);
size_t onednn_workspace(const strata_node *n, onednn_describe describe);
/* state.c */
int onednn_setup(const strata_node *n, onednn_describe describe, void *state);
void onednn_teardown(void *state);
int onednn_ctx_open(const strata_node *n, const void *state, void *ctx);
void onednn_ctx_close(void *ctx);
int onednn_run(const strata_run *r);

/* The callbacks of a layer's impls, which differ in rows and epilogues alone; known_
 * describes where weights have data. */
#define ONEDNN_CALLBACKS_OF(describe_, known_)                                           \
    static int accept(const strata_node *n)                                              \
    {                                                                                    \
        return onednn_accept(n, describe_);                                              \
    }                                                                                    \
    static size_t workspace(const strata_node *n)                                        \
    {                                                                                    \
        return onednn_workspace(n, describe_);                                           \
    }                                                                                    \
    static int setup(const strata_node *n, void *state)                                  \
    {                                                                                    \
        return onednn_setup(n, known_, state);                                           \
    }
#define ONEDNN_CALLBACKS(describe_) ONEDNN_CALLBACKS_OF(describe_, describe_)
/* The same of one function, with_(node, known, request). */
#define ONEDNN_CALLBACKS_WITH(with_)                                                     \
    static int describe(const strata_node *n, struct onednn_request *request)            \
    {                                                                                    \
        return with_(n, false, request);                                                 \
    }                                                                                    \
    static int describe_known(const strata_node *n, struct onednn_request *request)      \
    {                                                                                    \
        return with_(n, true, request);                                                  \
    }                                                                                    \
    ONEDNN_CALLBACKS_OF(describe, describe_known)

/* The same, image by image: oneDNN (2.6.3) has kernels for dense tensors alone, and of a
 * batch inside a larger tensor each image is dense where channels are outside of the
 * plane. Not for a batch of one. */
struct onednn_image {
    strata_node node;
    strata_tensor in, out;
};
int onednn_one_image(struct onednn_image *image, const strata_node *n);

#define ONEDNN_EACH_CALLBACKS(describe_)                                                 \
    static int describe_each(const strata_node *n, struct onednn_request *request)       \
    {                                                                                    \
        struct onednn_image image;                                                       \
        const int status = onednn_one_image(&image, n);                                  \
        return status ? status : describe_(&image.node, request);                        \
    }                                                                                    \
    static int accept_each(const strata_node *n)                                         \
    {                                                                                    \
        return onednn_accept(n, describe_each);                                          \
    }                                                                                    \
    static size_t workspace_each(const strata_node *n)                                   \
    {                                                                                    \
        return onednn_workspace(n, describe_each);                                       \
    }                                                                                    \
    static int setup_each(const strata_node *n, void *state)                             \
    {                                                                                    \
        ((struct onednn_state *)state)->each = true;                                     \
        return onednn_setup(n, describe_each, state);                                    \
    }

/* of_: what the names of the callbacks end with. */
#define ONEDNN_IMPL_OF(id_, name_, rows_, efficiency_, bandwidth_, of_)                  \
    .id = (id_), .device = STRATA_HOST, .name = (name_), .rows = STRATA_ARRAY(rows_),    \
    .efficiency = (efficiency_), .bandwidth = (bandwidth_),                              \
    .state_size = sizeof(struct onednn_state),                                           \
    .ctx_size = sizeof(struct onednn_context), .accept = accept##of_,                    \
    .workspace = workspace##of_, .setup = setup##of_, .teardown = onednn_teardown,       \
    .ctx_open = onednn_ctx_open, .ctx_close = onednn_ctx_close, .run = onednn_run
#define ONEDNN_IMPL(id_, name_, rows_, efficiency_, bandwidth_)                          \
    ONEDNN_IMPL_OF(id_, name_, rows_, efficiency_, bandwidth_, )
#define ONEDNN_EACH(id_, name_, rows_, efficiency_, bandwidth_)                          \
    ONEDNN_IMPL_OF(id_, name_, rows_, efficiency_, bandwidth_, _each)

/* quantized.c: layers that compute in 8 bits. */
/* Factors of the sums, from the weights where `known`, in setup; else any. */
int onednn_quantized_factors(const strata_node *n, const strata_quantized *q, int dim,
                             bool known, struct onednn_request *request);
/* scale_out as a divisor, in memory of strata.pack; in setup. */
int onednn_quantized_divisor(const strata_node *n, void **divisor);
/* They, and zero_in, as attributes. */
int onednn_quantized_attributes(const strata_node *n,
                                const struct onednn_request *request,
                                dnnl_primitive_attr_t attr);
/* Bias, activation and division as post-ops. */
int onednn_quantized_steps(const strata_node *n, const struct onednn_request *request,
                           dnnl_post_ops_t ops, struct onednn_arguments *arguments);

extern const strata_extends onednn_convolution, onednn_deconvolution,
    onednn_fully_connected, onednn_lrn, onednn_matrix_multiply, onednn_pooling,
    onednn_quantized_convolution, onednn_quantized_deconvolution,
    onednn_quantized_product;

#endif /* PLUGINS_COMMON_ONEDNN_PRIMITIVE_H */
