/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of methods.
 */
#include "calibrate/method/method.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <strata/narrow.h>

/* ---- numbers
 * ---------------------------------------------------------------------------
 */

static uint8_t int8_code(double steps)
{
    return (uint8_t)(int8_t)fmax(fmin(nearbyint(steps), 127), -127);
}

static double int8_value(uint8_t code)
{
    return (int8_t)code;
}

static uint8_t e4m3_code(double steps)
{
    return strata_e4m3_of_float(strata_odd_of_double(steps), 1);
}

static double e4m3_value(uint8_t code)
{
    return (double)strata_float_of_e4m3(code);
}

const struct quant_type quant_int8 = {"int8",    STRATA_INT8, 127,
                                      int8_code, int8_value,  true};
const struct quant_type quant_e4m3 = {"e4m3",    STRATA_E4M3, 448,
                                      e4m3_code, e4m3_value,  false};

const struct quant_type *quant_type_find(const char *name)
{
    return strcmp(name, quant_int8.name) == 0   ? &quant_int8
           : strcmp(name, quant_e4m3.name) == 0 ? &quant_e4m3
                                                : NULL;
}

/* ---- methods
 * ---------------------------------------------------------------------------
 */

const struct range_method range_methods[] = {
    {"max", bound_max, "the largest magnitude: nothing is saturated"},
    {"percentile", bound_percentile, "that which --share of the values do not exceed"},
    {"entropy", bound_entropy, "least divergence of the quantised from the values"},
    {"mse", bound_mse, "least mean squared error"},
};
const size_t range_methods_count = sizeof range_methods / sizeof *range_methods;

const struct range_method *range_method_find(const char *name)
{
    for (size_t i = 0; i < range_methods_count; i++)
        if (strcmp(range_methods[i].name, name) == 0)
            return &range_methods[i];
    return NULL;
}

/* Of a tensor of zeros any scale is right; and a scale of FP32 must not be 0. */
double quant_scale(const struct quant_type *t, double magnitude)
{
    return magnitude > 0 ? fmax((double)(float)(magnitude / t->steps), FLT_MIN) : 1;
}
