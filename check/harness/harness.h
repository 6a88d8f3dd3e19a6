/* SPDX-License-Identifier: Apache-2.0
 *
 * One test for every layer: it reads the layer's tables and checks each claim in them.
 * For every impl, row and combination of formats it builds the tensors with guard bands
 * and poison, runs, and compares with the layer's reference. The layers' own tests
 * and `strata check` use it. See harness_check_on.
 */
#ifndef CHECK_HARNESS_HARNESS_H
#define CHECK_HARNESS_HARNESS_H

#include <stdbool.h>

#include "check/harness/number.h"
#include "registry/registry.h"

#define HARNESS_INPUTS 8
#define HARNESS_WEIGHTS 8
#define HARNESS_OUTPUTS 8

struct harness_shape {
    int rank; /* 0: absent */
    int64_t dims[STRATA_MAX_RANK];
};

/* What the inputs of a case hold, beside plain numbers. */
enum layer_numbers {
    NUMBERS_PLAIN,
    NUMBERS_NAN, /* some NaN; and no input that an output follows may lose one */
    NUMBERS_INFINITE,
    NUMBERS_NEGATIVE_INFINITE,
    NUMBERS_TINY,        /* subnormal in FP16 */
    NUMBERS_DENORMAL,    /* in FP32 */
    NUMBERS_LARGE,       /* up to the largest of FP16 */
    NUMBERS_WHOLE_RANGE, /* integers from their type's lowest to its highest */
    NUMBERS_FINE,        /* plain ones with all bits of FP32; of the weights, too */
    NUMBERS_COUNT
};

/*
 * A case of a layer test. `attrs` is "name = value; name = value"; "$C" in it stands for
 * the channels of input 0. With `sweep` = a rank (3 to 5), input shapes are not given:
 * the case runs over N in {1, 3}, C in {1, 2, 3, 7, 8, 9, 16, 17, 33} and every spatial
 * size in {1, 5, 7, 14}, all inputs alike, and shapes that the layer refuses are left
 * out. Weights of rank 0 take the shape that the layer expects (an optional one that
 * `absent` names is left out). Inputs are drawn from [low, high], default [-2, 2].
 *
 * An input of rank 0 among others is absent, as `none`; a dim of 0 makes it empty. Inputs
 * are floats unless in_dtype says otherwise: then FP32, FP16 and BF16 are each tried, as
 * the rows allow. BOOL8 inputs are 0 or 1. The case also runs with its floats as FP64
 * where a row takes that, with `integers` as each integer type that a row takes, and as
 * each type in `dtypes`: always the inputs whose in_dtype is not set.
 */
struct layer_case {
    const char *layer; /* "Convolution" */
    const char *attrs;
    int sweep;
    int n_in; /* 0: 1; negative: none */
    struct harness_shape in[HARNESS_INPUTS];
    struct harness_shape weight[HARNESS_WEIGHTS];
    unsigned absent;  /* bit i: weight i is not given */
    bool refused;     /* the layer must refuse this: shape or weight_shape fails */
    double low, high; /* of the inputs; both 0: the default */
    double tolerance; /* factor on the default bound; 0: 1 */
    double weight_low, weight_high; /* of the weights; both 0: [-1, 1] */
    bool integers;   /* whole-numbered inputs; as integers of every type, too */
    bool may_refuse; /* the layer may refuse this, or every impl veto it */
    enum layer_numbers numbers;            /* in place of those from [low, high] */
    int32_t in_dtype[HARNESS_INPUTS];      /* 0 (FP32): any float */
    int32_t weight_dtype[HARNESS_WEIGHTS]; /* where weight_shape leaves it; 0: FP32, or
                                              the first that the layer takes */
    uint64_t dtypes; /* mask 1 << STRATA_INT64 ...: types to run it as, too */
    struct harness_range {
        double low, high;
    } in_range[HARNESS_INPUTS]; /* of one input; both 0: the case's. For indices */
    struct harness_range weight_range[HARNESS_WEIGHTS]; /* the same of a weight */
};

struct harness_result {
    int runs;     /* (shape, impl, formats, variant) tuples executed */
    int refused;  /* shapes the layer refused */
    int vetoed;   /* combinations an impl's accept refused */
    int failures; /* already reported, at most a few per case in full */
};

/* What is counted for each impl of the layer. */
struct harness_tally {
    int runs, vetoed, failures;
    int lacking;    /* of the vetoed: this machine cannot run them */
    char veto[200]; /* the last one's reason */
};

struct trial; /* check/harness/trial.h */

/* A failure: which rule of the contract (an id of check/rules.c), and what was seen. */
typedef void (*harness_problem)(const struct trial *t, const char *rule, const char *text,
                                void *user);

/* The impls to run: those of a device, in the math modes that their accept takes. */
struct harness_target {
    struct mirror *mirror; /* of the device; NULL: the host */
    const char *impl;      /* only the one of this name; NULL: all */
    const char *formats;   /* only these, as trial_formats writes them; NULL: all */
    bool wide;             /* sweep every size that blocks and tiles may miss */
    bool quick;            /* sweep a few sizes */
    unsigned every;        /* one shape of so many in a sweep; of larger tensors, one
                              combination of formats after a row's first; 0: all */
    bool plain;            /* values alone: one run each, without a look at guards */
    int64_t most;          /* elements of a tensor; 0: 2^22. Larger shapes are refused */
    bool part;             /* of the impls: that none runs is no failure */
    struct harness_tally *tally; /* an element for each impl of the layer, or NULL */
    /* What follows may be NULL. */
    bool (*wants)(const struct registry_impl *impl, void *user);
    void (*place)(const struct trial *t, void *user); /* before each shape and variant */
    bool (*takes)(const struct trial *t, int row, void *user); /* a combination */
    bool steady; /* how a combination runs does not depend on those before it, but on */
    unsigned turn; /* this and the seed */
    bool one_mode; /* of math for a combination, in turn; else both */
    void (*visit)(struct trial *t, int row); /* in place of the comparison */
    harness_problem problem;                 /* in place of lines to `report` */
    void *user;
    char *phase; /* HARNESS_PHASE bytes for the name of the callback that runs */
};
#define HARNESS_PHASE 24

/* Run one case; problems are reported to `report` (one line each). The same seed,
 * attributes and shapes give the same data. */
typedef void (*harness_report)(const char *line);
struct harness_result harness_check_on(const struct harness_target *target,
                                       const struct registry_layer *layer,
                                       const struct layer_case *c, uint64_t seed,
                                       harness_report report);

/* ---- building blocks, for tests with values of their own ----------------------- */

/* How tensors lie. */
enum harness_pitch {
    PITCH_NONE, /* dense */
    PITCH_ALL,  /* every stride but the innermost above dense */
    PITCH_INSIDE, /* a range of a larger tensor's channels */
    PITCH_WIDER   /* of one with more of them */
};

#define HARNESS_PER_BYTE 2 /* values of 4 bits */

/* Weight 0 as a file has it, in few bits, and the factors that make its values; for impls
 * of STRATA_WEIGHT_STORED. */
struct harness_stored {
    int factors; /* which weight they are; 0: the file has floats */
    strata_tensor weight, factor;
    int along;            /* the dim whose neighbours share a byte, or -1 */
    int group_along;      /* the one whose neighbours share a factor, */
    int64_t group;        /* and how many */
    void *values, *factor_values; /* check/harness/number.h; the node's */
};

/* An instance: params from attribute text, shapes resolved through the layer. */
struct harness_node {
    const struct registry_layer *layer;
    void *params, *memory; /* memory: what lists in params point to */
    strata_tensor in[HARNESS_INPUTS], out[HARNESS_OUTPUTS], weight[HARNESS_WEIGHTS];
    struct harness_stored stored;
    strata_node node;             /* tensors without formats or data */
    bool vetoed;                  /* the last harness_run ended in the impl's accept, */
    bool lacking;                 /* as this machine has not what the impl needs */
    bool no_pack;                 /* hide the host extension "strata.pack/1" */
    /* For impls that claim it. */
    enum harness_pitch pitched_in, pitched_out, pitched_residual;
    bool in_place;                /* out[0] lies on in[0] */
    struct mirror *mirror;        /* run on its device; NULL: on the host */
    bool plain;                   /* one run, without a look at guards */
    bool ask;                     /* sessions have no memory: for accept alone */
    const int32_t *in_dtype, *weight_dtype; /* as in layer_case; NULL: all 0 */
    const char *fault; /* rule that the last harness_run saw broken, or NULL */
    char *phase;       /* HARNESS_PHASE bytes, or NULL */
    strata_error err;
};

/* STRATA_OK, or what the attribute, weight_shape or shape refused, with the message in
 * n->err. Free in every case. mirror, plain, phase and the dtypes of *n are kept. */
int harness_open(struct harness_node *n, const struct registry_layer *layer,
                 const char *attrs, const struct harness_shape *in, int n_in,
                 const struct harness_shape *weight, unsigned absent);
void harness_close(struct harness_node *n);
/* As the core hands an output to shape: of the first input's dtype, and without a shape
 * callback of its shape. */
void harness_blank_output(const struct harness_node *n, strata_tensor *out);
/* Whether an impl may be asked: one that takes weights of few bits, where there are. */
static inline bool harness_suits(const struct harness_node *n, const strata_impl *impl)
{
    return !(impl->flags & STRATA_WEIGHT_STORED) || n->stored.factors > 0;
}
/* Name the callback that is about to run. */
void harness_enter(const struct harness_node *n, const char *phase);

/* Run one impl in one combination of formats (one bit each, 0 for what is absent) on
 * values (check/harness/number.h): converts in, runs, checks guards, pads and inputs,
 * converts out. Weights are rounded to their dtype. Where output 0 is empty run is not
 * called. Returns the run's status; n->err has the message. */
struct harness_formats {
    uint64_t in[HARNESS_INPUTS], out[HARNESS_OUTPUTS];
};
int harness_run(struct harness_node *n, const struct registry_impl *impl, int row,
                const struct harness_formats *formats, const void *const *in,
                const void *const *weight, const strata_epilogue *epilogue,
                void *const *out);

/* Whether the impl's accept refuses that, which costs no values: the message is in
 * n->err, and n->vetoed says so, too. */
bool harness_refuses(struct harness_node *n, const struct registry_impl *impl, int row,
                     const struct harness_formats *formats,
                     const strata_epilogue *epilogue);

/* Whether a tensor of this rank and dtype may lie in a format. */
bool harness_fits(const strata_tensor *t, uint64_t format);
/* Combinations of a row's formats that its tensors' dtypes and ranks allow; 0: none. */
int64_t harness_combinations(const struct registry_row *row,
                             const struct harness_node *n);
/* The k-th of them; false past the last. A port that goes with input 0 (STRATA_SAME) may
 * have a format there in which its tensor cannot lie: see harness_fits. */
bool harness_combination(struct harness_formats *out, const struct registry_row *row,
                         const struct harness_node *n, int64_t k);

/* Whether the layer gives "strata.reference/2", whose integers are whole. */
bool harness_is_typed(const struct registry_layer *layer);
/* Whether the layer's reference says that a number may come of a NaN. */
bool harness_ignores_nan(const struct registry_layer *layer);
/* Whether numbers between inputs and outputs may be rounded to E4M3. */
bool harness_rounds_within(const struct registry_layer *layer);
/* Whether they are held to the range of FP16 where the inputs are FP16. */
bool harness_holds_within(const struct registry_layer *layer);
/* The layer's "strata.reference/2" or "/1"; ENOTFOUND without either. */
int harness_reference(struct harness_node *n, const void *const *in,
                      const void *const *weight, void *const *out);

/* Plugins of the build: a registry over $STRATA_PLUGIN_PATH alone, NULL with the reason
 * in err. */
strata_registry *harness_registry(strata_error *err);

#endif /* CHECK_HARNESS_HARNESS_H */
