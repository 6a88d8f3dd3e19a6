/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast: elements of another dtype by ONNX's rule, over memory as it lies. The output's
 * dtype is exact: `precision` leaves it alone.
 */
#include "plugins/cast/cast.h"

#include "plugins/cast/loops.h"
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/walk.h"

#define CHUNK 4096 /* elements of a loop, from and to which the caches hold */

static int cast_shape(const strata_node *n)
{
    const strata_cast *p = n->params;
    strata_tensor *out = &n->out[0];
    out->rank = n->in[0].rank;
    memcpy(out->dims, n->in[0].dims, sizeof out->dims);
    out->dtype = p->to;
    out->exact = 1;
    return STRATA_OK;
}

static double cast_flops(const strata_node *n)
{
    (void)n;
    return 0;
}

static int cast_accept(const strata_node *n)
{
    const strata_cast *p = n->params;
    return n->out[0].dtype == p->to
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output has another dtype");
}

static void cast_half(void *to, const void *from, size_t n, int saturate)
{
    (void)saturate;
    element_to_half_row(to, from, (int64_t)n);
}

static void cast_from_half(void *to, const void *from, size_t n, int saturate)
{
    (void)saturate;
    element_from_half_row(to, from, (int64_t)n);
}

static cast_fn *cast_choose(int to, int from)
{
    if (to == STRATA_FP16 && from == STRATA_FP32)
        return cast_half;
    if (to == STRATA_FP32 && from == STRATA_FP16)
        return cast_from_half;
#ifdef CAST_WIDE
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return cast_of_avx512(to, from);
    if (element_has_f16c())
        return cast_of_avx2(to, from);
#endif
    return cast_of(to, from);
}

static int cast_run(const strata_run *r)
{
    const strata_cast *p = r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    cast_fn *loop = cast_choose(y->dtype, x->dtype);
    const size_t to = dtype_size(y->dtype), from = dtype_size(x->dtype);
    const int64_t size = y->size;
    const int done = x->data == y->data && x->dtype == y->dtype;
#pragma omp parallel for schedule(static) if (size >= WALK_PARALLEL)
    for (int64_t i = 0; i < (done ? 0 : size); i += CHUNK)
        loop((char *)y->data + (size_t)i * to, (const char *)x->data + (size_t)i * from,
             (size_t)(size - i < CHUNK ? size - i : CHUNK), p->saturate);
    walk_clear_pads(y);
    return STRATA_OK;
}

/* To memory of the dtype and back, from and to double or int64_t. */
static int cast_reference(const strata_node *n, const void *const *in,
                          const void *const *weight, void *const *out)
{
    const strata_cast *p = n->params;
    const int wide_in = dense_is_real(n->in[0].dtype) ? STRATA_FP64 : STRATA_INT64;
    const int wide_out = dense_is_real(p->to) ? STRATA_FP64 : STRATA_INT64;
    const int64_t count = dense_count(&n->out[0]);
    const char *from = in[0];
    char *to = out[0];
    (void)weight;
    for (int64_t i = 0; i < count; i++) {
        char element[8];
        cast_of(p->to, wide_in)(element, from + 8 * i, 1, p->saturate);
        cast_of(wide_out, p->to)(to + 8 * i, element, 1, p->saturate);
    }
    return STRATA_OK;
}

static const void *cast_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     cast_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "to",
     .type = STRATA_ENUM,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_cast, to),
     .choices = "fp32|fp16|int8|u8|i32|i64|bool|bf16|e4m3|e5m2|fp64",
     .doc = "dtype of the output"},
    {.name = "saturate",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_cast, saturate),
     .def = 1,
     .doc = "to e4m3 and e5m2: the largest in place of what lies past it"},
};

static const strata_row rows[] = {CAST_ROWS};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .bandwidth = 0.65,
     .accept = cast_accept,
     .run = cast_run},
};

static const strata_layer cast = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Cast",
    .doc = "Elements of another dtype, as a program casts them",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_cast),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = cast_shape,
    .flops = cast_flops,
    .extension = cast_extension,
};

static const strata_layer *const layers[] = {&cast};
STRATA_MODULE("core", "1.0.0", "Cast", layers)
