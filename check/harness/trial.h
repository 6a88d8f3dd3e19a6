/* SPDX-License-Identifier: Apache-2.0
 *
 * What a visitor of harness_check_on works on: one shape of one case with its values, one
 * impl and one combination of formats.
 */
#ifndef CHECK_HARNESS_TRIAL_H
#define CHECK_HARNESS_TRIAL_H

#include "check/harness/session.h"

struct trial_values {
    /* check/harness/number.h; NULL: absent */
    void *in[HARNESS_INPUTS], *weight[HARNESS_WEIGHTS], *out[HARNESS_OUTPUTS];
    void *expected[HARNESS_OUTPUTS];
    void *held[HARNESS_OUTPUTS]; /* the same of FP16 within; made when asked for */
    /* how much roundings of inputs change each: FP32's, and where it is held, FP16's */
    double shaken[HARNESS_OUTPUTS], shaken_held[HARNESS_OUTPUTS];
    double *residual;
    double *wanted; /* of the first output behind an epilogue */
    float *scale, *bias;
};

struct trial {
    const struct layer_case *c;
    const struct harness_target *target;
    struct harness_tally *tally; /* of the impl, or NULL */
    harness_report report;
    struct harness_node node;
    struct trial_values v;
    uint64_t seed, random;
    int32_t as;                       /* dtype of the inputs that may be of several */
    int32_t in_dtype[HARNESS_INPUTS]; /* of each, as it is now */
    int turn;                         /* goes through activation kinds and pack on/off */
    unsigned met;                     /* combinations of larger tensors */
    struct harness_result result;
    const struct registry_impl *impl; /* NULL between impls */
    struct harness_formats formats;
    const char *variant; /* NULL: none */
    char attrs[512];     /* as they are now, "$C" replaced */
    bool agreement;      /* expected is another impl's result: there is no reference */
    int agreed_row;      /* of that impl, `agreed` */
    const struct registry_impl *agreed;
    struct harness_formats agreed_formats;
    bool expects; /* expected holds something */
    bool done;    /* a visitor has seen enough */
};

/* trial_problem.c */
/* Report a broken rule here. */
void trial_problem(struct trial *t, const char *rule, const char *text);
/* Report what a session found: its fault, or `otherwise` with its message. */
void trial_session_problem(struct trial *t, const struct session *s,
                           const char *otherwise);
/* Report what the node's harness found: its fault, or `otherwise` with its message. */
void trial_node_problem(struct trial *t, const char *otherwise);
/* "fp32:nchw,fp32:nchw->fp32:nchw"; "" without an impl. */
void trial_formats(const struct trial *t, char *text, size_t size);
/* "1x3x5x7,1x3x1x1" */
void trial_shapes(const struct trial *t, char *text, size_t size);

/* A case's text with "$C" replaced by the channels of the first input, if it has any. */
void trial_attrs(char *out, size_t size, const char *text, const struct harness_shape *in,
                 int n_in);

/* trial_values.c */
/* Whether a test may take tensors of so many elements. */
bool trial_is_moderate(const struct trial *t);
/* Draw v's inputs and weights, make room for the rest; false: no memory.
 * The same numbers for the same seed, attributes and shapes. */
bool trial_make_values(struct trial *t);
void trial_free_values(struct trial_values *v);
/* v.out with v.expected and the epilogue; differences are reported. */
void trial_compare(struct trial *t, const strata_epilogue *e);

/* trial_define.c */
/* v.expected of the layer's reference; STRATA_ENOTFOUND: it has none. Else a failure is
 * in t->node.err, and *rule is what it breaks. */
int trial_define(struct trial *t, const char **rule);

/* trial_numbers.c */
/* Whether input i holds floats. */
bool trial_real_input(const struct trial *t, int i);
/* The next of t->random. */
uint64_t trial_random(struct trial *t);
/* What t->c->numbers is called; NULL: plain. */
const char *trial_numbers_name(const struct trial *t);
/* The i-th number in place of a plain one. */
double trial_number(struct trial *t, double plain);
/* Put NaN or infinities among the inputs. */
void trial_place_specials(struct trial *t);
/* Fill v.shaken. */
void trial_shake(struct trial *t);
/* Report an output that follows an input and yet is a number where that is NaN. */
void trial_follow(struct trial *t);
/* Whether the result is out of its dtype's range, and the impl may then give any number.
 */
bool trial_drops(const struct trial *t, double want, int32_t dtype);
/* What output o may be instead of what is expected: the definition with all that lies
 * between held to FP16's range, as the layer says and the inputs' formats have it. NULL:
 * nothing else. */
const double *trial_held(struct trial *t, int o);
/* Whether NaN and infinities of output o are as they are expected, and its numbers agree
 * within what is allowed; else where they are not: at. */
bool trial_specials_agree(const struct trial *t, int o, const double *expected,
                          int32_t dtype, double allowed, int64_t *at);

/* trial_types.c */
/* Dtypes that the inputs of a case are tried as, beside its own, as a mask. */
uint64_t trial_further_types(const struct trial *t);

/* trial_variant.c */
/* harness_run with this trial's values. */
int trial_run(struct trial *t, int row, const strata_epilogue *e);
/* Whether its values cost more than all else: impls are asked before any are laid out,
 * and each goes through one math mode and all its tails at once, as in a sweep. */
bool trial_is_large(const struct trial *t);
/* The mode that a combination runs in beside the default one. */
int trial_other_mode(struct trial *t);
/* Every variant of this trial's combination that the impl's flags claim, in the math
 * modes there are. */
void trial_combination(struct trial *t, int row);

/* trial.c */
/* session_make with this trial's values. */
int trial_session(struct trial *t, struct session *s, int row);

#endif /* CHECK_HARNESS_TRIAL_H */
