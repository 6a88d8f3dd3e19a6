/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs that networks seldom hold: NaN, infinities, numbers at both ends of what FP16
 * and FP32 can say. The layer's definition says what becomes of them, and is itself asked
 * one thing: where an output follows an input, NaN there is NaN here.
 */
#include "check/harness/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *name;
    double special;     /* put among plain numbers; 0: none */
    double unit;        /* numbers are whole multiples of it; 0: plain ones */
    uint64_t multiples; /* each below this */
    int shift;          /* times a power of 2 below this one's */
} kinds[NUMBERS_COUNT] = {
    [NUMBERS_NAN] = {.name = "NaN among its inputs", .special = NAN},
    [NUMBERS_INFINITE] = {.name = "infinity among its inputs", .special = INFINITY},
    [NUMBERS_NEGATIVE_INFINITE] = {.name = "negative infinity among its inputs",
                                   .special = -INFINITY},
    [NUMBERS_TINY] = {"inputs below 2^-13", .unit = 0x1p-24, .multiples = 1 << 11},
    [NUMBERS_DENORMAL] = {"inputs below 2^-126", .unit = 0x1p-149, .multiples = 1 << 23},
    [NUMBERS_LARGE] = {"inputs up to 65504", .unit = 1, .multiples = 1 << 11, .shift = 6},
    [NUMBERS_WHOLE_RANGE] = {"inputs over their types' whole range"},
    [NUMBERS_FINE] = {"inputs with all bits of FP32"},
};

/* SplitMix64. */
uint64_t trial_random(struct trial *t)
{
    uint64_t z = t->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static const struct kind *kind_of(const struct trial *t)
{
    return &kinds[t->c->numbers];
}

const char *trial_numbers_name(const struct trial *t)
{
    return kind_of(t)->name;
}

double trial_number(struct trial *t, double plain)
{
    const struct kind *k = kind_of(t);
    if (t->c->numbers == NUMBERS_FINE)
        return (float)(plain * (1 + (double)(trial_random(t) >> 11) * 0x1p-53 * 0x1p-6));
    if (k->unit == 0)
        return plain;
    const uint64_t random = trial_random(t);
    const double size = (double)(random >> 32 & (k->multiples - 1)) * k->unit;
    const double wide =
        k->shift ? ldexp(size, (int)((random >> 1) % (unsigned)k->shift)) : size;
    return random & 1 ? -wide : wide;
}

bool trial_real_input(const struct trial *t, int i)
{
    return t->node.in[i].rank > 0 && number_is_real(t->node.in[i].dtype);
}

/* Into the last image of each input, so that the others must be as ever. */
void trial_place_specials(struct trial *t)
{
    const double special = kind_of(t)->special;
    for (int i = 0; i < t->node.node.n_in && special != 0; i++) {
        const strata_tensor *in = &t->node.in[i];
        if (!trial_real_input(t, i) || in->count == 0)
            continue;
        const int64_t image = in->rank > 1 ? in->count / in->dims[0] : in->count;
        double *last = (double *)t->v.in[i] + in->count - image;
        last[trial_random(t) % (uint64_t)image] = special;
        for (int64_t k = 0; k < image; k++)
            if (trial_random(t) % 8 == 0)
                last[k] = special;
    }
}

/* Outputs by definition: of the reference, or of the impl that the others must agree
 * with. */
static int define(struct trial *t, void *const *out)
{
    const void *const *in = (const void *const *)t->v.in;
    const void *const *weight = (const void *const *)t->v.weight;
    return t->agreement ? harness_run(&t->node, t->agreed, t->agreed_row,
                                      &t->agreed_formats, in, weight, NULL, out)
                        : harness_reference(&t->node, in, weight, out);
}

/* ---- what roundings do --------------------------------------------------------- */

#define ROUNDING 0x1p-22      /* of an input, relative */
#define ROUNDING_HELD 0x1p-11 /* the same where FP16 lies between */

static void free_all(void *values[HARNESS_OUTPUTS])
{
    for (int i = 0; i < HARNESS_OUTPUTS; i++)
        free(values[i]);
}

static bool make_all(const struct trial *t, void *values[HARNESS_OUTPUTS])
{
    bool made = true;
    for (int o = 0; o < t->node.node.n_out; o++)
        made &=
            (values[o] = calloc((size_t)t->node.out[o].count + 1, VALUE_SIZE)) != NULL;
    return made;
}

/* The largest change of what output o is expected to be. */
static double largest_move(const struct trial *t, int o, const double *expected,
                           const double *moved)
{
    double most = 0;
    for (int64_t k = 0; k < t->node.out[o].count; k++) {
        const double by = fabs(moved[k] - expected[k]);
        most = isfinite(by) ? fmax(most, by) : most;
    }
    return most;
}

/* Each input moved by a rounding, and as it was in `kept`; false: no memory. */
static bool move_inputs(struct trial *t, double rounding, double *kept[HARNESS_INPUTS])
{
    for (int i = 0; i < t->node.node.n_in; i++) {
        const int64_t n = t->node.in[i].count;
        double *x = t->v.in[i];
        if (!trial_real_input(t, i))
            continue;
        kept[i] = malloc((size_t)n * sizeof *x + 1);
        if (!kept[i])
            return false;
        memcpy(kept[i], x, (size_t)n * sizeof *x);
        for (int64_t k = 0; k < n; k++)
            x[k] *= 1 + (trial_random(t) & 1 ? rounding : -rounding);
    }
    return true;
}

static void restore_inputs(struct trial *t, double *kept[HARNESS_INPUTS])
{
    for (int i = 0; i < HARNESS_INPUTS; i++) {
        if (kept[i])
            memcpy(t->v.in[i], kept[i], (size_t)t->node.in[i].count * sizeof *kept[i]);
        free(kept[i]);
    }
}

/* At least how much roundings of inputs change each of `outputs`. */
static void shake(struct trial *t, double rounding, void *const *outputs, double *shaken)
{
    void *moved[HARNESS_OUTPUTS] = {0};
    double *kept[HARNESS_INPUTS] = {0};
    const bool done = move_inputs(t, rounding, kept) && make_all(t, moved) &&
                      define(t, moved) == STRATA_OK;
    for (int o = 0; o < t->node.node.n_out && done; o++)
        if (number_is_real(t->node.out[o].dtype))
            shaken[o] = fmax(shaken[o], largest_move(t, o, outputs[o], moved[o]));
    restore_inputs(t, kept);
    free_all(moved);
}

/* Each input up and down. */
static void shake_held(struct trial *t)
{
    for (int turn = 0; turn < 2; turn++) {
        const uint64_t random = t->random;
        shake(t, ROUNDING_HELD, t->v.held, t->v.shaken_held);
        t->random = random;
        shake(t, -ROUNDING_HELD, t->v.held, t->v.shaken_held);
    }
}

/* A sine of 60000 has no more digits than FP32 leaves of 60000. */
void trial_shake(struct trial *t)
{
    shake(t, ROUNDING, t->v.expected, t->v.shaken);
}

/* ---- what lies between, in FP16 ------------------------------------------------ */

/* The definition of inputs that say they are FP16; false: there is none. */
static bool define_held(struct trial *t)
{
    int32_t dtype[HARNESS_INPUTS];
    for (int i = 0; i < t->node.node.n_in; i++) {
        dtype[i] = t->node.in[i].dtype;
        if (number_is_any(dtype[i]))
            t->node.in[i].dtype = STRATA_FP16;
    }
    const bool done = make_all(t, t->v.held) && define(t, t->v.held) == STRATA_OK;
    if (done && t->c->numbers == NUMBERS_LARGE)
        shake_held(t);
    for (int i = 0; i < t->node.node.n_in; i++)
        t->node.in[i].dtype = dtype[i];
    return done;
}

const double *trial_held(struct trial *t, int o)
{
    if (t->agreement || !harness_holds_within(t->node.layer) || t->node.node.n_in < 1 ||
        format_at(__builtin_ctzll(t->formats.in[0]))->dtype != STRATA_FP16)
        return NULL;
    if (!t->v.held[0] && !define_held(t)) {
        free_all(t->v.held);
        memset(t->v.held, 0, sizeof t->v.held);
    }
    return t->v.held[o];
}

/* ---- NaN in, NaN out ----------------------------------------------------------- */

#define STEP 0x1p-6      /* exact in every float format, as plain numbers are */
#define PROBES 24        /* elements of an input that are tried */
#define FEWEST 2         /* of them, where outputs are large */
#define PROBED (1 << 17) /* elements of outputs that the probes of an input may take */

/* How an output moves when an input moves by one step and by two. */
static bool follows(double at_0, double at_1, double at_2)
{
    const double one = at_1 - at_0, two = at_2 - at_0;
    return one != 0 && isfinite(two) && fabs(two - 2 * one) <= 0.25 * fabs(two);
}

/* Element k of input i, moved: outputs at plain, one step, two steps, and NaN. */
static bool probe(struct trial *t, int i, int64_t k, void *at[4][HARNESS_OUTPUTS])
{
    double *x = t->v.in[i];
    const double plain = x[k];
    const double values[] = {plain, plain + STEP, plain + 2 * STEP, NAN};
    bool done = true;
    for (int j = 0; j < 4 && done; j++) {
        x[k] = values[j];
        done = define(t, at[j]) == STRATA_OK;
    }
    x[k] = plain;
    return done;
}

/* Elements of output o that follow, *first of them one that is a number where the input
 * is NaN; less those that are NaN then, as a NaN may change its place in an order. */
static int64_t count_lost(const struct trial *t, int o, void *at[4][HARNESS_OUTPUTS],
                          int64_t *first)
{
    const double *at_0 = at[0][o], *at_1 = at[1][o], *at_2 = at[2][o], *nan = at[3][o];
    int64_t lost = 0;
    *first = -1;
    for (int64_t e = t->node.out[o].count; e-- > 0;) {
        const bool is_follower = follows(at_0[e], at_1[e], at_2[e]);
        lost += is_follower - (isnan(nan[e]) != 0);
        *first = is_follower && isfinite(nan[e]) ? e : *first;
    }
    return lost;
}

/* Whether a NaN was lost there, and told. */
static bool judge(struct trial *t, int i, int64_t k, void *at[4][HARNESS_OUTPUTS])
{
    char what[256];
    for (int o = 0; o < t->node.node.n_out; o++) {
        int64_t e;
        if (!number_is_real(t->node.out[o].dtype) || count_lost(t, o, at, &e) <= 0 ||
            e < 0)
            continue;
        const double *at_0 = at[0][o], *at_1 = at[1][o], *nan = at[3][o];
        snprintf(what, sizeof what,
                 "%s output %d, element %lld follows input %d, element %lld (%g, "
                 "then %g), and is %g where that is NaN",
                 t->agreement ? "the impl's" : "the reference's", o, (long long)e, i,
                 (long long)k, at_0[e], at_1[e], nan[e]);
        trial_problem(t, "nan-lost", what);
        return true;
    }
    return false;
}

/* Each probe works out all outputs. */
static int64_t probes_of(const struct trial *t)
{
    int64_t each = 1;
    for (int o = 0; o < t->node.node.n_out; o++)
        each += t->node.out[o].count;
    const int64_t some = PROBED / each;
    return some < FEWEST ? FEWEST : some > PROBES ? PROBES : some;
}

void trial_follow(struct trial *t)
{
    void *at[4][HARNESS_OUTPUTS] = {{0}};
    bool going = !harness_ignores_nan(t->node.layer);
    for (int j = 0; j < 4; j++)
        going &= make_all(t, at[j]);
    t->impl = t->agreed;
    t->formats = t->agreed_formats;
    for (int i = 0; i < t->node.node.n_in && going; i++) {
        const int64_t n = t->node.in[i].count, step = n / probes_of(t) + 1;
        for (int64_t k = 0; trial_real_input(t, i) && k < n && going; k += step)
            going = probe(t, i, k, at) && !judge(t, i, k, at);
    }
    t->impl = NULL;
    for (int j = 0; j < 4; j++)
        free_all(at[j]);
}

/* ---- comparing ----------------------------------------------------------------- */

/* An infinity may be the largest number of its format: a maximum begins with that. */
static bool same_kind(double got, double want, double largest)
{
    if (isnan(want))
        return isnan(got);
    if (isinf(want))
        return fabs(got) >= largest && signbit(got) == signbit(want);
    return isfinite(got);
}

/* Where an output element is more than one operation, its sums may be shared with its
 * neighbours' (tiles of transforms), and hold what only those should. */
static bool may_spread(const struct trial *t, const double *image, int64_t n)
{
    bool special = false;
    for (int64_t k = 0; k < n; k++)
        special |= !isfinite(image[k]);
    return special && t->node.layer->layer.flops;
}

bool trial_drops(const struct trial *t, double want, int32_t dtype)
{
    return t->impl && t->impl->impl.flags & STRATA_OVERFLOW_DROPPED &&
           fabs(want) > number_largest(dtype); /* infinity, too; not a NaN */
}

static bool agrees(const struct trial *t, double got, double want, double allowed,
                   int32_t dtype, bool spread)
{
    const double largest = number_largest(dtype);
    const bool dropped = t->impl && t->impl->impl.flags & STRATA_NAN_DROPPED;
    if (isnan(want) && (dropped || t->c->numbers != NUMBERS_NAN))
        return true; /* infinity less infinity, zero times infinity: one formula's */
    if (spread && !isfinite(got))
        return true;
    if (trial_drops(t, want, dtype))
        return true;
    if (!same_kind(got, want, largest))
        return isfinite(want) && fabs(want) > largest && got == copysign(INFINITY, want);
    return !isfinite(want) || fabs(got - want) <= allowed + number_rounding(dtype, want);
}

bool trial_specials_agree(const struct trial *t, int o, const double *expected,
                          int32_t dtype, double allowed, int64_t *at)
{
    const strata_tensor *out = &t->node.out[o];
    const double *got = t->v.out[o];
    const int64_t image = out->rank > 1 ? out->count / out->dims[0] : out->count;
    const bool any = t->c->numbers == NUMBERS_NAN && harness_ignores_nan(t->node.layer) &&
                     !harness_is_typed(t->node.layer);
    for (int64_t first = 0; first < out->count && !any; first += image) {
        const bool spread = may_spread(t, expected + first, image);
        for (*at = first; *at < first + image; ++*at)
            if (!agrees(t, got[*at], expected[*at], allowed, dtype, spread))
                return false;
    }
    return true;
}
