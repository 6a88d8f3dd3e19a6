/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow: elements with the values of a type that is no dtype here, kept in a wider one.
 * Integers keep their low bits, floats are rounded to FP32, which is exact: `precision`
 * leaves it alone. Linear; may run in place.
 */
#include "plugins/narrow/narrow.h"

#include <strata/narrow.h>

#include "plugins/common/dense.h"
#include "plugins/common/walk.h"

/* The dtypes that the type's values are read from: integers hold all of them. */
static uint32_t narrow_dtypes(const strata_narrow *p)
{
    const int bits = narrow_rule_of(p).bits;
    if (!bits)
        return 1u << STRATA_FP32 | 1u << STRATA_FP16 | 1u << STRATA_BF16;
    return 1u << STRATA_INT64 | (bits < 32 ? 1u << STRATA_INT32 : 0) |
           (bits < 8 ? 1u << STRATA_INT8 : 0);
}

static int narrow_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[0];
    strata_tensor *y = &n->out[0];
    if (!(narrow_dtypes(n->params) >> x->dtype & 1))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input's dtype does not hold such values: floats need "
                           "fp32 or less, integers i32 or i64, of 4 bits and less int8 "
                           "too; put a Cast before it");
    y->rank = x->rank;
    memcpy(y->dims, x->dims, sizeof y->dims);
    y->dtype = narrow_rule_of(n->params).bits ? x->dtype : STRATA_FP32;
    y->exact = 1;
    return STRATA_OK;
}

static float narrow_half(const struct narrow_rule *r, uint16_t x)
{
    return narrow_float(r, strata_float_of_half(x));
}

static float narrow_bfloat(const struct narrow_rule *r, uint16_t x)
{
    return narrow_float(r, strata_float_of_bfloat(x));
}

/* clang-format off */
#define NARROW_EACH(to_type, from_type, function)                                        \
    do {                                                                                 \
        const from_type *from = r->in[0].data;                                           \
        to_type *to = r->out[0].data;                                                    \
        _Pragma("omp parallel for schedule(static) if (n >= WALK_PARALLEL)")             \
        for (int64_t i = 0; i < n; i++)                                                  \
            to[i] = (to_type)function(&rule, from[i]);                                   \
    } while (0)
/* clang-format on */

static int narrow_run(const strata_run *r)
{
    const struct narrow_rule rule = narrow_rule_of(r->params);
    const int64_t n = r->in[0].count;
    switch (r->in[0].dtype) {
    case STRATA_FP32:
        NARROW_EACH(float, float, narrow_float);
        break;
    case STRATA_FP16:
        NARROW_EACH(float, uint16_t, narrow_half);
        break;
    case STRATA_BF16:
        NARROW_EACH(float, uint16_t, narrow_bfloat);
        break;
    case STRATA_INT8:
        NARROW_EACH(int8_t, int8_t, narrow_integer);
        break;
    case STRATA_INT32:
        NARROW_EACH(int32_t, int32_t, narrow_integer);
        break;
    default:
        NARROW_EACH(int64_t, int64_t, narrow_integer);
        break;
    }
    return STRATA_OK;
}

/* ---- in FP64 and by remainders, for comparison ---------------------------------------
 */

static int64_t reference_integer(const struct narrow_rule *r, int64_t x)
{
    const int64_t range = INT64_C(1) << r->bits, rest = x % range;
    const int64_t positive = rest < 0 ? rest + range : rest;
    return r->is_signed && positive >= range / 2 ? positive - range : positive;
}

static double reference_power(const struct narrow_rule *r, double x)
{
    int exponent;
    const double part = frexp(fabs(x), &exponent); /* in [0.5, 1) */
    if (isnan(x) || (!r->saturate && (fabs(x) < 0x1p-127 || isinf(x))))
        return NAN;
    if (isinf(x))
        return r->most;
    if (fabs(x) <= 0x1p-127)
        return 0x1p-127;
    const int up = (r->round == STRATA_NARROW_UP && part > 0.5) ||
                   (r->round == STRATA_NARROW_NEAREST && part >= 0.75);
    const double y = ldexp(1, exponent - 1 + up);
    return y <= r->most ? y : r->saturate ? r->most : NAN;
}

static double reference_float(const struct narrow_rule *r, double x)
{
    int exponent;
    if (r->fraction < 0)
        return reference_power(r, x);
    if (isnan(x))
        return r->has_nan ? x : 0;
    if (!isinf(x)) {
        frexp(x, &exponent);
        const double step = ldexp(1, (int)fmax(exponent - 1 - r->fraction, r->least));
        x = nearbyint(x / step) * step;
    }
    if (fabs(x) > r->most)
        return r->saturate ? copysign(r->most, x) : NAN;
    return x == 0 && !r->has_minus_zero ? 0 : x;
}

static int narrow_reference(const strata_node *n, const void *const *in,
                            const void *const *weight, void *const *out)
{
    const struct narrow_rule rule = narrow_rule_of(n->params);
    const int64_t count = dense_count(&n->out[0]);
    (void)weight;
    for (int64_t i = 0; i < count; i++)
        if (rule.bits)
            ((int64_t *)out[0])[i] = reference_integer(&rule, ((int64_t *)in[0])[i]);
        else
            ((double *)out[0])[i] = reference_float(&rule, ((double *)in[0])[i]);
    return STRATA_OK;
}

static const void *narrow_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     narrow_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "values",
     .type = STRATA_ENUM,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_narrow, values),
     .choices = "int16|u16|u32|int4|u4|int2|u2|e4m3fnuz|e5m2fnuz|e8m0|e2m1",
     .doc = "type whose values the elements take"},
    {.name = "saturate",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_narrow, saturate),
     .def = 1,
     .doc =
         "of floats that have NaN: the largest in place of what lies past it, not NaN"},
    {.name = "round",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_narrow, round),
     .choices = "up|down|nearest",
     .doc = "to which power of two, of e8m0"},
};

static const strata_row rows[] = {NARROW_ROWS};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .bandwidth = 0.5,
     .run = narrow_run},
};

static const strata_layer narrow = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Narrow",
    .doc = "Values of a narrower type, as elements of the wider one",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_narrow),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = narrow_shape,
    .extension = narrow_extension,
};

static const strata_layer *const layers[] = {&narrow};
STRATA_MODULE("core", "1.0.0", "Narrow", layers)
