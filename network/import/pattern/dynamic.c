/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes whose scale is computed, back to floats: what quantize_dynamic of ONNX
 * Runtime makes of a MatMul by a constant.
 */
#include "core/alloc.h"
#include "network/import/pattern/pattern.h"

enum { ZEROS = 3 }; /* of the columns, an input of MatMulInteger */

static bool is_one(const struct match *m, const char *name, int dtype)
{
    const struct value *v = match_tensor(m, name);
    return v->dtype == dtype && v->rank <= 1 && value_count(v) == 1;
}

/* One number, or one for each of n columns. */
static bool is_of_columns(const struct value *v, int64_t n)
{
    return value_count(v) == 1 || (v->rank == 1 && v->dims[0] == n);
}

static int zeros_of(const struct match *m)
{
    const struct node *p = match_node(m, "p");
    return p->n_in > ZEROS ? p->in[ZEROS] : VALUE_NONE;
}

static bool is_product(const struct match *m)
{
    const struct value *a = match_tensor(m, "a"), *b = match_tensor(m, "B");
    const struct value *factors = match_tensor(m, "S");
    const struct value *zeros = graph_value(match_graph((struct match *)m), zeros_of(m));
    return a->rank >= 2 && a->dtype == STRATA_UINT8 && b->rank == 2 &&
           value_count(b) > 0 && (b->dtype == STRATA_INT8 || b->dtype == STRATA_UINT8) &&
           is_one(m, "s", STRATA_FP32) && is_one(m, "z", STRATA_UINT8) &&
           factors->dtype == STRATA_FP32 && is_of_columns(factors, b->dims[1]) &&
           (!zeros || is_of_columns(zeros, b->dims[1])) &&
           node_integer(match_node(m, "c"), "to", 0) == ONNX_FLOAT;
}

static bool is_biased(const struct match *m)
{
    const struct value *c = match_tensor(m, "C");
    const int64_t n = match_tensor(m, "B")->rank == 2 ? match_tensor(m, "B")->dims[1] : 0;
    const int64_t count = value_count(c), last = c->rank ? c->dims[c->rank - 1] : 1;
    return is_product(m) && c->dtype == STRATA_FP32 && last == count &&
           (count == 1 || count == n);
}

static struct node *emit(struct match *m)
{
    const int64_t n = match_tensor(m, "B")->dims[1];
    const int64_t factors = value_count(match_tensor(m, "S"));
    const bool biased = match_value(m, "C") >= 0;
    const int in[] = {match_value(m, "a"),
                      match_value(m, "B"),
                      match_value(m, "z"),
                      zeros_of(m),
                      match_value(m, "s"),
                      match_constant(m, "S", 1, &factors, 1),
                      biased ? match_constant(m, "C", 1, &n, 1) : VALUE_NONE};
    return match_own(m, "DynamicProduct", in, ARRAY_LENGTH(in));
}

#define PRODUCT "p = MatMulInteger a B z ...; c = Cast p; k = Mul s S; y = Mul c k"
static const struct pattern rows[] = {
    {.text = PRODUCT "; r = Add y C", .check = is_biased, .emit = emit},
    {.text = PRODUCT, .check = is_product, .emit = emit},
};

const struct pattern_table pattern_dynamic = {rows, ARRAY_LENGTH(rows)};
