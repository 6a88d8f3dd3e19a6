/* SPDX-License-Identifier: Apache-2.0
 *
 * The Strata plugin ABI, major version 1.
 *
 * This header is all a plugin needs. It is C99 and C++14 (for nvcc), includes only
 * <stddef.h> and <stdint.h>, and a plugin links nothing of ours: everything the plugin
 * calls comes through the strata_host table that every argument struct carries.
 *
 * A module is one shared object. STRATA_MODULE() emits its entry function and an ELF
 * note, read before dlopen, that names the ABI version and the layers inside. All
 * descriptors are constant tables: the core lists, validates, documents, serialises and
 * tests them without running plugin code.
 *
 * Life of a layer instance, and which threads may be where:
 *
 *   call               may write          may run concurrently with
 *   -----------------  -----------------  -------------------------------------------
 *   strata_module_v1   nothing            nothing; under 100 ms, starts no thread
 *   extension          nothing            anything
 *   shape, weight_     its output argument anything, itself on one instance too
 *   shape, flops
 *   accept, workspace  nothing            anything, itself on one instance too
 *   setup, teardown    state              other instances
 *   ctx_open/_close    its own ctx        other contexts
 *   run                its own ctx,       other contexts of one engine;
 *                      outputs, workspace serial within one context
 *   host->log, fail    -                  anything
 *
 * run never allocates, never frees, never synchronises, and touches no stream but its
 * own. Memory for params, state and ctx is allocated zeroed by the core.
 *
 * Compatibility: every struct the host passes or reads starts with struct_size, or comes
 * in a strata_array that carries its stride; new fields are added at the end only, and a
 * side reads at most the size the other side declared. strata_tensor, strata_attr and
 * strata_weight are frozen for major version 1.
 */
#ifndef STRATA_PLUGIN_H
#define STRATA_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_ABI_MAJOR 1
#define STRATA_ABI_MINOR 9
/* The lowest host minor a module needs; define before including to require more. */
#ifndef STRATA_ABI_REQUIRED_MINOR
#define STRATA_ABI_REQUIRED_MINOR 0
#endif

#define STRATA_MAX_RANK 8
#define STRATA_MAX_PORTS 4  /* ports in a row's first masks */
#define STRATA_MORE_PORTS 4 /* and in those that follow; the last entry in use repeats */

/* Status codes. 0 is success; the text is in the strata_error passed along. */
enum {
    STRATA_OK = 0,
    STRATA_EINVAL = 1,       /* an argument breaks the contract */
    STRATA_ENOMEM = 2,       /* host or device memory ran out */
    STRATA_EOVERFLOW = 3,    /* a size does not fit */
    STRATA_EIO = 4,          /* the operating system refused a file operation */
    STRATA_ENOTFOUND = 5,    /* a named thing does not exist */
    STRATA_EPARSE = 6,       /* a file's content is malformed */
    STRATA_EUNSUPPORTED = 7, /* valid, but not available here */
    STRATA_EBUSY = 8,        /* the object is in use by another thread */
    STRATA_EMODULE = 9,      /* a plugin file was refused */
    STRATA_EPLAN = 10,       /* no plan satisfies the constraints */
    STRATA_EDEVICE = 11,     /* a device failed; from accept: is none for me */
    STRATA_EDEVICELOST = 12, /* the device is unusable until the process ends */
    STRATA_EMISMATCH = 13,   /* results or records disagree */
    STRATA_EINTERNAL = 14    /* a defect in Strata or in a plugin */
};

/* Element types. FP32, FP16 and BF16 may stand for each other where the network's
 * `precision` says so; all others are what the network made them. */
enum {
    STRATA_FP32 = 0,
    STRATA_FP16 = 1,
    STRATA_INT8 = 2,
    STRATA_UINT8 = 3,
    STRATA_INT32 = 4,
    STRATA_INT64 = 5,
    STRATA_BOOL8 = 6, /* "bool": one byte, 0 or 1 */
    STRATA_BF16 = 7,
    STRATA_E4M3 = 8, /* FP8: 4 bits of exponent, no infinity (ONNX FLOAT8E4M3FN) */
    STRATA_E5M2 = 9, /* FP8: 5 bits of exponent */
    STRATA_FP64 = 10,
    STRATA_DTYPE_COUNT = 11
};

/*
 * Format masks, one bit per (dtype, layout). The names are for rank 4; a format applies
 * to every rank by the same rule (dim 0 = N, dim 1 = C, the rest spatial), so F32_NCHW
 * on a 5-D tensor is NCDHW and on a 3-D tensor BMN. With Cp = C rounded up to V:
 *   linear   NCHW      ((n*C + c)*H + h)*W + w
 *   blocked  NC/VHWV   (((n*(Cp/V) + c/V)*H + h)*W + w)*V + c%V
 *   last     NHWC      ((n*H + h)*W + w)*Cp + c        (V = 1, or 8 for NHWC8)
 *   batch    CHWN      ((c*H + h)*W + w)*N + n
 */
#define STRATA_F32_NCHW (UINT64_C(1) << 0)
#define STRATA_F16_NCHW (UINT64_C(1) << 1)
#define STRATA_F16_NC2HW2 (UINT64_C(1) << 2)
#define STRATA_F16_NHWC8 (UINT64_C(1) << 3)
#define STRATA_F32_NHWC (UINT64_C(1) << 4)
#define STRATA_F16_NHWC (UINT64_C(1) << 5)
#define STRATA_F32_NC8HW8 (UINT64_C(1) << 6)
#define STRATA_F32_NC16HW16 (UINT64_C(1) << 7)
#define STRATA_I8_NC4HW4 (UINT64_C(1) << 8)
#define STRATA_I8_NC32HW32 (UINT64_C(1) << 9)
#define STRATA_U8_NHWC (UINT64_C(1) << 10)
#define STRATA_I32_NCHW (UINT64_C(1) << 11)
#define STRATA_I8_NCHW (UINT64_C(1) << 12)
#define STRATA_U8_NCHW (UINT64_C(1) << 13)
#define STRATA_F32_CHWN (UINT64_C(1) << 14)
#define STRATA_F16_CHWN (UINT64_C(1) << 15)
#define STRATA_I8_NHWC (UINT64_C(1) << 16)
#define STRATA_I64_NCHW (UINT64_C(1) << 17)
#define STRATA_BOOL_NCHW (UINT64_C(1) << 18)
#define STRATA_BF16_NCHW (UINT64_C(1) << 19)
#define STRATA_BF16_NHWC (UINT64_C(1) << 20)
#define STRATA_BF16_NHWC8 (UINT64_C(1) << 21)
#define STRATA_U8_NC4HW4 (UINT64_C(1) << 22)
#define STRATA_U8_NC32HW32 (UINT64_C(1) << 23)
#define STRATA_I8_NHWC16 (UINT64_C(1) << 24)
#define STRATA_E4M3_NCHW (UINT64_C(1) << 25)
#define STRATA_E4M3_NHWC16 (UINT64_C(1) << 26)
#define STRATA_E5M2_NCHW (UINT64_C(1) << 27)
#define STRATA_E5M2_NHWC16 (UINT64_C(1) << 28)
#define STRATA_F64_NCHW (UINT64_C(1) << 29)
#define STRATA_FORMAT_COUNT 30
/* In a row: the same format as input 0. */
#define STRATA_SAME (UINT64_C(1) << 63)
/* The four formats every built-in layer supports on every device. */
#define STRATA_FOUR \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_F16_NC2HW2 | STRATA_F16_NHWC8)

/* Pad lanes (c >= C inside the last vector) of a tensor. */
enum { STRATA_PAD_ZERO = 0, STRATA_PAD_ANY = 1 };

/* Devices an impl can run on. */
enum { STRATA_HOST = 0, STRATA_CUDA = 1, STRATA_DEVICE_KINDS = 2 };

/* Math modes, each with what those before it allow: no tensor cores; FP16, BF16 and 8
 * bits on them; products of FP32 too, whose factors may be cut to the 10 bits of TF32.
 * Sums are FP32 in all. */
enum { STRATA_MATH_DEFAULT = 0, STRATA_MATH_TENSOR_OP = 1, STRATA_MATH_TF32 = 2 };

typedef struct strata_error strata_error; /* opaque here; see strata.h */

/* A constant array whose element size is known, so elements may grow at the end. */
typedef struct strata_array {
    const void *ptr;
    uint32_t n;      /* elements */
    uint32_t stride; /* bytes from one element to the next */
} strata_array;
#define STRATA_ARRAY(a) \
    { (a), (uint32_t)(sizeof(a) / sizeof((a)[0])), (uint32_t)sizeof((a)[0]) }

/*
 * One tensor as a layer sees it. dims are logical and in N, C, spatial order whatever
 * the layout. The element with index i is at offset (in elements)
 *   sum over d != vector_dim of i[d]*strides[d]
 *   + (i[vector_dim]/vector)*strides[vector_dim] + i[vector_dim]%vector
 * vector is 1 and vector_dim -1 for a layout without vectors.
 */
typedef struct strata_tensor {
    void *data;      /* device memory; NULL outside setup, ctx_open and run */
    int64_t count;   /* logical elements: the product of dims */
    int64_t size;    /* elements allocated, pad lanes included */
    uint64_t format; /* mask with one bit set; 0 in shape */
    int64_t dims[STRATA_MAX_RANK];
    int64_t strides[STRATA_MAX_RANK]; /* elements */
    int32_t rank; /* 0: an optional weight or input that is absent */
    int32_t dtype;
    int32_t vector_dim;
    int32_t vector;
    int32_t pad;   /* STRATA_PAD_ZERO or STRATA_PAD_ANY */
    int32_t exact; /* set by shape: out[i].dtype stays, whatever the precision asked for
                      (a Cast to FP16). Dtypes that are not FP32, FP16 or BF16 always do */
    int32_t reserved[6];
} strata_tensor;

static inline int64_t strata_offset(const strata_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    int32_t d;
    for (d = 0; d < t->rank; d++)
        offset += d == t->vector_dim ? index[d] / t->vector * t->strides[d] +
                                           index[d] % t->vector
                                     : index[d] * t->strides[d];
    return offset;
}

/* Offset of (n, c, h, w) in a rank-4 tensor, in elements. */
static inline int64_t strata_offset4(const strata_tensor *t, int64_t n, int64_t c,
                                     int64_t h, int64_t w)
{
    int64_t channel = t->vector_dim == 1
                          ? c / t->vector * t->strides[1] + c % t->vector
                          : c * t->strides[1];
    return n * t->strides[0] + channel + h * t->strides[2] + w * t->strides[3];
}

/* Epilogues an impl can compute in the same pass, in this order:
 *   y = activation(scale[c]*x + bias[c] + residual)
 * The convolution's own bias weight is not an epilogue. */
enum {
    STRATA_EPILOGUE_SCALE = 1,      /* per-channel factor */
    STRATA_EPILOGUE_BIAS = 2,       /* per-channel addend */
    STRATA_EPILOGUE_RESIDUAL = 4,   /* a tensor of the output's shape and format; dense
                                       without STRATA_PITCHED_RESIDUAL */
    STRATA_EPILOGUE_ACTIVATION = 8  /* a kind allowed by impl.activations */
};

/* Activation kinds, shared by the Activation layer and epilogues. */
enum {
    STRATA_RELU = 0,
    STRATA_LEAKY_RELU = 1, /* x > 0 ? x : alpha*x */
    STRATA_RELU6 = 2,
    STRATA_CLIP = 3, /* min(max(x, alpha), beta) */
    STRATA_SIGMOID = 4,
    STRATA_TANH = 5,
    STRATA_ELU = 6,      /* x > 0 ? x : alpha*(exp(x) - 1) */
    STRATA_SELU = 7,     /* beta*(x > 0 ? x : alpha*(exp(x) - 1)) */
    STRATA_SOFTPLUS = 8, /* log(1 + exp(x)) */
    STRATA_SOFTSIGN = 9, /* x/(1 + |x|) */
    STRATA_GELU = 10,    /* x/2*(1 + erf(x/sqrt(2))) */
    STRATA_SILU = 11,    /* x*sigmoid(x) */
    STRATA_HARD_SIGMOID = 12, /* min(max(alpha*x + beta, 0), 1) */
    STRATA_HARD_SWISH = 13,   /* x*min(max(x/6 + 1/2, 0), 1) */
    STRATA_MISH = 14,         /* x*tanh(softplus(x)) */
    STRATA_GELU_TANH = 15,    /* x/2*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3))) */
    STRATA_SWISH = 16,        /* x*sigmoid(alpha*x) */
    STRATA_CELU = 17,         /* max(x, 0) + min(alpha*(exp(x/alpha) - 1), 0) */
    STRATA_THRESHOLDED_RELU = 18, /* x > alpha ? x : 0 */
    STRATA_SHRINK = 19,      /* x < -alpha ? x + beta : x > alpha ? x - beta : 0 */
    STRATA_SCALED_TANH = 20, /* alpha*tanh(beta*x) */
    STRATA_ACTIVATION_COUNT = 21
};

typedef struct strata_epilogue {
    int32_t flags;      /* STRATA_EPILOGUE_*; 0: nothing to fuse */
    int32_t activation; /* kind */
    double alpha, beta; /* of the activation */
    const float *scale; /* C elements on the device, or NULL */
    const float *bias;  /* C elements on the device, or NULL */
    const strata_tensor *residual;
} strata_epilogue;

/* What the host offers. fail records a message and returns code, so a callback ends with
 * `return STRATA_FAIL(r, STRATA_EINVAL, "kernel %d exceeds input %d", k, n);` */
enum { STRATA_LOG_ERROR = 0, STRATA_LOG_WARNING, STRATA_LOG_INFO, STRATA_LOG_DEBUG };
typedef struct strata_host {
    uint32_t struct_size;
    uint32_t abi_major, abi_minor;
    uint32_t reserved;
    int (*fail)(strata_error *err, int code, const char *format, ...)
#ifdef __GNUC__
        __attribute__((format(printf, 3, 4)))
#endif
        ;
    void (*log)(int level, const char *format, ...)
#ifdef __GNUC__
        __attribute__((format(printf, 2, 3)))
#endif
        ;
    /* A table by id ("strata.pack/1"), or NULL; a module copes with NULL. */
    const void *(*extension)(const char *id);
} strata_host;
#define STRATA_FAIL(call, ...) ((call)->host->fail((call)->err, __VA_ARGS__))

/*
 * A layer instance while it is planned or set up. Owned by the core, valid during the
 * call. shape reads params, in[].dims, in[].dtype and weight[].dims, and writes
 * out[].rank and out[].dims (out[].dtype starts as in[0].dtype). In every other call the
 * tensors are complete. Weights are dense linear tensors; weight[i] is the layer's i-th
 * declared weight and has rank 0 when the network gives none. An input that the layer
 * declares optional has rank 0 where the network writes `none`. A dim may be 0: run is
 * not called where all outputs are empty, and an empty input has count 0 and any data.
 */
typedef struct strata_node {
    uint32_t struct_size;
    int32_t n_in, n_out, n_weights;
    const void *params;
    const strata_tensor *in;
    strata_tensor *out;
    const strata_tensor *weight; /* data set in setup and ctx_open (WEIGHT_PACKED) */
    const strata_epilogue *epilogue; /* NULL in shape; kinds fixed, pointers at run */
    int32_t device;                  /* STRATA_HOST or STRATA_CUDA */
    int32_t sm;                      /* compute capability times 10, or 0 */
    int32_t math;                    /* STRATA_MATH_DEFAULT, or _TENSOR_OP (and more) */
    int32_t row;                     /* index into impl.rows, or -1 */
    void *stream;                    /* setup and ctx_open may enqueue here */
    void *instance;                  /* the core's; for host extensions */
    const strata_host *host;
    strata_error *err;
    int32_t tf32;                    /* 1: STRATA_MATH_TF32; math is _TENSOR_OP then */
    int32_t reserved;
} strata_node;

/* Whether factors of FP32 may be cut to TF32; not by a host that knows no such mode. */
static inline int strata_may_use_tf32(const strata_node *n)
{
    return n->struct_size > offsetof(strata_node, tf32) && n->tf32;
}

typedef struct strata_run {
    uint32_t struct_size;
    int32_t n_in, n_out, n_weights;
    const void *params;
    const void *state;
    void *ctx;
    const strata_tensor *in;
    const strata_tensor *out;    /* data is to be written in full, pads by the contract */
    const strata_tensor *weight;
    const strata_epilogue *epilogue; /* never NULL; flags 0 when nothing is fused */
    void *workspace;             /* 256-byte aligned, undefined content; NULL when 0 */
    size_t workspace_size;       /* bytes */
    void *stream;                /* cudaStream_t on CUDA, NULL on the host */
    const strata_host *host;
    strata_error *err;
} strata_run;

/* Attributes: the core reads the INI value, checks it, writes it into params. */
enum {
    STRATA_I64 = 0,    /* int64_t */
    STRATA_F64 = 1,    /* double */
    STRATA_BOOL = 2,   /* int32_t, 0 or 1 */
    STRATA_ENUM = 3,   /* int32_t, index into choices */
    STRATA_STRING = 4, /* strata_string */
    STRATA_INTS = 5,   /* strata_ints; written "3x3" or "3, 3" */
    STRATA_REALS = 6   /* strata_reals; written "0.5, 0.25" */
};
/* Memory of these is the core's and lives as long as params. */
typedef struct strata_string { const char *text; size_t length; } strata_string;
typedef struct strata_ints { const int64_t *v; int64_t n; } strata_ints;
typedef struct strata_reals { const double *v; int64_t n; } strata_reals;

enum {
    STRATA_REQUIRED = 1, /* attribute and weight flags */
    /* Of a weight: factors of weight 0, whose dims they have or 1. The core multiplies as
     * it loads weight 0, whose values a file may then have as integers or FP8; only
     * weight_shape sees the factors, all other callbacks find them absent (since 1.5),
     * but for those of an impl of STRATA_WEIGHT_STORED.
     * Where weight_shape sets `vector` of an expected weight above 1, that many
     * neighbours of weight 0 along `vector_dim` share an element of the file, the last
     * ones whatever is left (since 1.6). Of weight 0 it may be 2: the file has a byte of
     * U8 for two values of 4 bits, the first in the low ones, each with 8 added; dims are
     * those of the values. Of factors it is how many a factor is for; dims are their own. */
    STRATA_FACTORS = 2
};

typedef struct strata_attr {
    const char *name; /* [a-z][a-z0-9_]* */
    int32_t type;
    int32_t flags;
    size_t offset;    /* into params */
    double def;       /* numbers, bool, enum index */
    double min, max;  /* inclusive, each element of a list too; both 0: no limit */
    const char *choices;  /* enum: names separated by '|' */
    const char *def_text; /* string and lists: the default as INI text, NULL: empty */
    const char *doc;
} strata_attr;

typedef struct strata_weight {
    const char *name;
    int32_t flags;
    int32_t rank;    /* -1: any */
    uint64_t dtypes; /* mask 1 << STRATA_FP32 ...; the core converts; 0: FP32 */
    const char *doc;
} strata_weight;

/* One line of an impl's format table. Each entry is a mask of formats the port takes or
 * gives, or STRATA_SAME; in_more goes on where in ends, and out_more where out does.
 * Entry 0 of an unused side is 0. The core expands masks. An absent input has no format:
 * its entry is not looked at. */
typedef struct strata_row {
    uint64_t in[STRATA_MAX_PORTS];
    uint64_t out[STRATA_MAX_PORTS];
    uint64_t in_more[STRATA_MORE_PORTS];  /* since 1.2 */
    uint64_t out_more[STRATA_MORE_PORTS]; /* since 1.2 */
} strata_row;

/* Impl flags; 0 is the strict default. */
enum {
    STRATA_NO_CAPTURE = 1,       /* run cannot be captured into a graph */
    STRATA_NONDETERMINISTIC = 2, /* two runs may differ in rounding */
    STRATA_INPLACE_OK = 4,       /* out[0] may be in[0]'s memory, same format */
    STRATA_PAD_DIRTY = 8,        /* leaves output pad lanes undefined */
    STRATA_PAD_IGNORED = 16,     /* reads correctly whatever input pad lanes hold */
    STRATA_STRIDED_IN = 32,      /* accepts input pitches above dense, of any dim */
    STRATA_STRIDED_OUT = 64,     /* writes output pitches above dense, of any dim */
    STRATA_WEIGHT_PACKED = 128,  /* only setup reads weight[0]'s data; the core frees it
                                    afterwards, ctx_open and run see NULL */
    STRATA_NAN_DROPPED = 256,    /* may give a number where the layer's definition has a
                                    NaN, as a maximum that passes over it (since 1.2) */
    STRATA_OVERFLOW_DROPPED = 512, /* may give any number, not infinity, where the result
                                      is out of its dtype's range (since 1.3) */
    /* Reads inputs, writes outputs, that lie inside a larger tensor as a range of its
     * channels, beside channels that are another's: dims' strides are those of the larger
     * one, the range begins and ends with a vector (or ends with the larger one's last
     * channel), data and every stride above dense are multiples of 16 bytes. accept is
     * asked of such tensors, too; what it takes at one pitch runs at any (since 1.4). */
    STRATA_PITCHED_IN = 1024,
    STRATA_PITCHED_OUT = 2048,
    /* Takes weight 0 as its file has it, and the factors, which the core then does not
     * multiply by: weight[0] has the file's dtype and dims, bytes where two values share
     * one. Without factors the impl is not asked (since 1.6). */
    STRATA_WEIGHT_STORED = 4096,
    /* Adds a residual that lies inside a larger tensor as STRATA_PITCHED_IN has it, at
     * strides of its own, whatever those of the output are; without the flag it is dense.
     * accept, workspace and setup see its strides, and no data (since 1.8). */
    STRATA_PITCHED_RESIDUAL = 8192,
    /* Rounds inputs of FP32 to FP16, to nearest, ties to even, before anything else: of
     * what was rounded so before, it makes the same, bit for bit. Inputs that come from
     * the host may then travel as halves (since 1.9). */
    STRATA_ROUNDS_IN = 16384
};

/* How a layer is computed: one tactic, on one device, for some rows of formats. */
typedef struct strata_impl {
    uint32_t id;    /* unique in the layer and module, never reused; engines store it */
    int32_t device; /* STRATA_HOST or STRATA_CUDA */
    int32_t flags;
    int32_t min_sm, max_sm; /* 0: no limit */
    int32_t epilogues;      /* STRATA_EPILOGUE_* it can compute */
    const char *name;       /* "c", "onednn", "wgmma": names the tactic to people */
    strata_array rows;      /* of strata_row */
    uint64_t activations;   /* mask 1 << STRATA_RELU ... for EPILOGUE_ACTIVATION */
    double efficiency; /* share of the device's peak it reaches, 0: unknown; used only
                          where nothing was measured, and so is bandwidth */
    size_t state_size, ctx_size; /* bytes */
    int (*accept)(const strata_node *n);      /* STRATA_OK, or fail with the reason */
    size_t (*workspace)(const strata_node *n); /* bytes; SIZE_MAX: overflow */
    int (*setup)(const strata_node *n, void *state);
    void (*teardown)(void *state);
    int (*ctx_open)(const strata_node *n, const void *state, void *ctx);
    void (*ctx_close)(void *ctx);
    int (*run)(const strata_run *r);
    double bandwidth; /* share of the device's bandwidth at which it moves its tensors,
                         0: unknown (since 1.1) */
    /* Of each output port: 1 + the input port in whose memory it may be, same format and
     * dims; 0: none. run then finds both pointers equal, as where a cache of a [state]
     * grows in place. Only states are kept so; STRATA_INPLACE_OK is for any tensor
     * (since 1.3). */
    uint8_t in_place[STRATA_MAX_PORTS + STRATA_MORE_PORTS];
} strata_impl;

/* What is computed. Only attrs, weights and impls are usual; NULL callbacks mean: output
 * shape and dtype of input 0; work of one operation per output element. */
typedef struct strata_layer {
    uint32_t struct_size;
    uint32_t version;
    const char *name; /* [A-Z][A-Za-z0-9]* */
    const char *doc;  /* one sentence */
    int32_t min_in, max_in, n_out; /* max_in -1: no limit; n_out -1: attribute decides */
    int32_t flags;
    size_t params_size; /* bytes */
    strata_array attrs, weights, impls;
    int (*shape)(const strata_node *n);
    /* Expected rank, dims and dtype of each weight, from params and inputs, called before
     * shape; n->weight has the given dims, or rank 0 where the network wants it made up
     * (random) or absent. Leave expected[i].rank 0 to take any shape. */
    int (*weight_shape)(const strata_node *n, strata_tensor *expected);
    double (*flops)(const strata_node *n); /* multiply and add count as two */
    int (*outputs)(const void *params);    /* number of outputs when n_out is -1 */
    const void *(*extension)(const char *id); /* "strata.reference/2" or /1, or NULL */
    uint64_t optional_in; /* bit i: input i may be absent, written `none` (since 1.2) */
} strata_layer;

/* Impls for a layer that another module defines. The params struct is that layer's, from
 * layers.h for built-in ones; params_size is its size as compiled here. */
typedef struct strata_extends {
    uint32_t struct_size;
    uint32_t version;  /* of the layer */
    const char *layer; /* "core::Convolution" */
    size_t params_size;
    strata_array impls;
} strata_extends;

typedef struct strata_module {
    uint32_t struct_size;
    uint32_t abi_minor;
    const char *ns;      /* namespace, [a-z][a-z0-9_.-]* */
    const char *version; /* of the module */
    const strata_layer *const *layers;
    uint32_t n_layers;
    uint32_t n_extends;
    const strata_extends *const *extends;
} strata_module;

/* Layer extension "strata.reference/1": the definition of right. Tensors are dense
 * linear FP64 (float and integer values alike); shapes are in the node. */
#define STRATA_REFERENCE_V1 "strata.reference/1"
enum {
    STRATA_NAN_IGNORED = 1, /* a number may come of inputs that hold a NaN, as where a
                               maximum passes over it */
    STRATA_E4M3_WITHIN = 2  /* what lies between may be E4M3: outputs off by 2^-4 */
#define STRATA_HELD_WITHIN 4 /* in[0] of FP16: what lies between is held to +-65504 */
};
typedef struct strata_reference {
    uint32_t struct_size;
    uint32_t flags; /* of those above */
    int (*run)(const strata_node *n, const double *const *in, const double *const *weight,
               double *const *out);
} strata_reference;

/* Layer extension "strata.reference/2": the same, and integers stay whole. A tensor is
 * dense linear, an array of double where its dtype is a float and of int64_t where it is
 * an integer or BOOL8, whatever the float or integer dtype; NULL where it is absent. */
#define STRATA_REFERENCE_V2 "strata.reference/2"
typedef struct strata_reference_typed {
    uint32_t struct_size;
    uint32_t flags; /* of those above */
    int (*run)(const strata_node *n, const void *const *in, const void *const *weight,
               void *const *out);
} strata_reference_typed;

/* Host extension "strata.pack/1": device memory owned by the core that lives as long as
 * the instance's state, for packed weights. Call in setup only. 256-byte aligned. */
#define STRATA_PACK_V1 "strata.pack/1"
typedef struct strata_pack {
    uint32_t struct_size;
    uint32_t reserved;
    int (*alloc)(const strata_node *n, size_t bytes, void **out);
} strata_pack;

/* ELF note. Fixed size; numbers little-endian. */
#define STRATA_NOTE_NAME "Strata"
#define STRATA_NOTE_TYPE 1
#define STRATA_NOTE_MAGIC 0x41545253u /* "SRTA" */
#define STRATA_NOTE_SECTION ".note.strata"
enum { STRATA_SANITIZER_NONE = 0, STRATA_SANITIZER_ADDRESS, STRATA_SANITIZER_THREAD };
typedef struct strata_note {
    uint32_t name_size, desc_size, type; /* ELF note header */
    char name[8];
    uint32_t magic;
    uint32_t abi_major, abi_minor, abi_required_minor;
    uint32_t cudart; /* CUDART_VERSION, or 0 */
    uint32_t sanitizer;
    char ns[64];
    char version[32];
    char layers[512]; /* names separated by ','; "+core::Convolution" where extended */
} strata_note;

#if defined(__SANITIZE_ADDRESS__)
#define STRATA_SANITIZER STRATA_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define STRATA_SANITIZER STRATA_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STRATA_SANITIZER STRATA_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define STRATA_SANITIZER STRATA_SANITIZER_THREAD
#endif
#endif
#ifndef STRATA_SANITIZER
#define STRATA_SANITIZER STRATA_SANITIZER_NONE
#endif
#ifdef CUDART_VERSION
#define STRATA_CUDART CUDART_VERSION
#else
#define STRATA_CUDART 0
#endif

#define STRATA_EXPORT __attribute__((visibility("default")))
#ifdef __cplusplus
#define STRATA_ENTRY extern "C" STRATA_EXPORT
#else
#define STRATA_ENTRY STRATA_EXPORT
#endif

/* Newest entry; the major is in the name, so one file can serve several. */
#define STRATA_ENTRY_NAME "strata_module_v1"
typedef const strata_module *(*strata_entry)(const strata_host *host);

/* The general form: layer and extends tables of pointers, each with its length. */
#define STRATA_MODULE_TABLES(ns_, version_, names_, layers_, n_layers_, extends_, \
                             n_extends_)                                           \
    STRATA_ENTRY const strata_module *strata_module_v1(const strata_host *host);  \
    extern __attribute__((visibility("hidden"))) const strata_note strata_note_v1; \
    __attribute__((section(STRATA_NOTE_SECTION), used, aligned(4)))               \
    const strata_note strata_note_v1 = {                                          \
        8, (uint32_t)(sizeof(strata_note) - 20), STRATA_NOTE_TYPE,                \
        STRATA_NOTE_NAME, STRATA_NOTE_MAGIC, STRATA_ABI_MAJOR, STRATA_ABI_MINOR,  \
        STRATA_ABI_REQUIRED_MINOR, STRATA_CUDART, STRATA_SANITIZER, ns_, version_,\
        names_};                                                                  \
    STRATA_ENTRY const strata_module *strata_module_v1(const strata_host *host)   \
    {                                                                             \
        static const strata_module module_ = {                                    \
            sizeof(strata_module), STRATA_ABI_MINOR, ns_, version_, layers_,      \
            n_layers_, n_extends_, extends_};                                     \
        return host->abi_major == STRATA_ABI_MAJOR ? &module_ : NULL;             \
    }

/* A module that defines layers: STRATA_MODULE("org.example", "1.0.0", "LeakyReLU",
 * layers) where layers is an array of const strata_layer pointers. */
#define STRATA_MODULE(ns_, version_, names_, layers_)     \
    STRATA_MODULE_TABLES(ns_, version_, names_, layers_,  \
                         (uint32_t)(sizeof(layers_) / sizeof((layers_)[0])), NULL, 0)

/* A module that only adds impls to layers of others: names_ is "+core::Convolution". */
#define STRATA_MODULE_EXTENDS(ns_, version_, names_, extends_)          \
    STRATA_MODULE_TABLES(ns_, version_, names_, NULL, 0, extends_,      \
                         (uint32_t)(sizeof(extends_) / sizeof((extends_)[0])))

#ifdef __cplusplus
}
/* Wrap a C++ callback's body: no exception crosses the ABI. */
#define STRATA_GUARD(call, ...)                                                \
    try {                                                                      \
        __VA_ARGS__                                                            \
    } catch (...) {                                                            \
        return STRATA_FAIL(call, STRATA_EINTERNAL, "C++ exception escaped");   \
    }
#endif

#endif /* STRATA_PLUGIN_H */
