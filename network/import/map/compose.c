/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of one operator, and constants that they read.
 */
#include "network/import/map/compose.h"

#include "io/weights/weights.h"
#include "network/import/carry/carry.h"

int compose_input(const struct mapping *m, int i)
{
    return i < m->node->n_in ? m->node->in[i] : VALUE_NONE;
}

int compose(struct mapping *m, const char *type, const int *in, int n)
{
    if (m->refused)
        return VALUE_NONE;
    const int out = map_between(m);
    map_section(m, type);
    for (int i = 0; i < n; i++)
        section_in(m->g, m->s, in[i]);
    section_out(m->g, m->s, out);
    return out;
}

int compose_one(struct mapping *m, const char *type, int x)
{
    return compose(m, type, &x, 1);
}

int compose_two(struct mapping *m, const char *type, int a, int b)
{
    return compose(m, type, (const int[]){a, b}, 2);
}

int compose_op(struct mapping *m, const char *type, const char *op, int a, int b)
{
    const int out = compose(m, type, (const int[]){a, b}, b >= 0 ? 2 : 1);
    section_word(m->g, m->s, "op", op);
    return out;
}

int compose_cast(struct mapping *m, int x, int dtype)
{
    const int out = compose_one(m, "Cast", x);
    section_word(m->g, m->s, "to", strata_dtype_name(dtype));
    return out;
}

int compose_narrow(struct mapping *m, int x, enum onnx_type type)
{
    const int out = compose_one(m, "Narrow", x);
    section_word(m->g, m->s, "values", carry_values(type));
    if (graph_is_real(onnx_type_carrier(type)))
        section_flag(m->g, m->s, "saturate", node_integer(m->node, "saturate", 1) != 0);
    if (type == ONNX_FLOAT8E8M0)
        section_word(m->g, m->s, "round", node_text(m->node, "round_mode", "up"));
    return out;
}

int compose_reshape(struct mapping *m, int x, int rank, const int64_t *shape)
{
    const int out = compose_one(m, "Shuffle", x);
    section_integers(m->g, m->s, "shape", rank ? shape : &(int64_t){1}, rank ? rank : 1);
    return out;
}

int compose_transpose(struct mapping *m, int x, int from_rank, const int64_t *perm,
                      int rank, const int64_t *shape)
{
    bool moves = false;
    for (int d = 0; d < from_rank; d++)
        moves |= perm[d] != d;
    if (!moves && rank <= 0)
        return x;
    const int out = compose_one(m, "Shuffle", x);
    if (moves)
        section_integers(m->g, m->s, "first", perm, from_rank);
    if (rank > 0)
        section_integers(m->g, m->s, "shape", shape, rank);
    return out;
}

int compose_reduce(struct mapping *m, const char *op, int x, const int64_t *axes, int n,
                   bool keep)
{
    const int out = compose_one(m, "Reduce", x);
    section_word(m->g, m->s, "op", op);
    if (n > 0)
        section_integers(m->g, m->s, "axes", axes, n);
    section_flag(m->g, m->s, "keep_dims", keep);
    return out;
}

void compose_end(struct mapping *m, int i, int rank)
{
    if (m->refused || !m->s || !m->s->n_out)
        return;
    m->s->out[0] = i < m->node->n_out ? m->node->out[i] : VALUE_NONE;
    m->s->ranks[0] = rank;
}

void compose_is(struct mapping *m, int i, int value, int rank, const int64_t *dims)
{
    if (m->refused)
        return;
    if (dims)
        map_reshape(m, value, i, rank, dims);
    else if (m->s && m->s->n_out && m->s->out[0] == value)
        compose_end(m, i, rank);
    else
        map_is(m, i, value);
}

bool compose_fits(struct mapping *m, const char *name, const int64_t *v, int64_t n,
                  int64_t least)
{
    for (int64_t i = 0; i < n; i++)
        if (v[i] < least || v[i] > INT32_MAX) {
            map_refuse(m, "'%s' holds %lld, which is not in [%lld, 2^31)", name,
                       (long long)v[i], (long long)least);
            return false;
        }
    return true;
}

void *compose_room(struct mapping *m, size_t size, const int64_t *dims, int n)
{
    int64_t all = 1;
    for (int d = 0; d < n; d++) {
        if (dims[d] < 0 || (dims[d] && all > IMPORT_FOLD_ELEMENTS / dims[d])) {
            map_refuse(m, "it would need a constant of more than %lld elements",
                       (long long)IMPORT_FOLD_ELEMENTS);
            return NULL;
        }
        all *= dims[d];
    }
    return arena_get(&m->g->arena, (size_t)all + 1, size);
}

int compose_number(struct mapping *m, int dtype, double v)
{
    const enum weight_dtype type = weight_dtype_of(dtype);
    void *data = arena_get(&m->g->arena, 1, weight_dtype_size(type));
    if (!data)
        return VALUE_NONE;
    weights_convert(data, dtype, &v, WEIGHT_F64, 1, NULL);
    return graph_add_constant(m->g, "", dtype, 0, NULL, data);
}

int compose_reals(struct mapping *m, int rank, const int64_t *dims, const double *v)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d];
    float *data = arena_get(&m->g->arena, (size_t)n, sizeof *data);
    for (int64_t i = 0; data && i < n; i++)
        data[i] = (float)v[i];
    return data ? graph_add_constant(m->g, "", STRATA_FP32, rank, dims, data)
                : VALUE_NONE;
}

double *compose_values(struct mapping *m, const struct value *v)
{
    const int64_t n = v ? value_count(v) : 0;
    double *out = v ? arena_get(&m->g->arena, (size_t)n + 1, sizeof *out) : NULL;
    if (out && n)
        weights_convert(out, STRATA_FP64, v->data, weight_dtype_of(v->dtype), n, NULL);
    return out;
}
