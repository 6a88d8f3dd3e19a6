/* SPDX-License-Identifier: Apache-2.0
 *
 * Einsum as transposes, sums and products of matrices, operand by operand.
 */
#include "network/import/map/compose.h"

#include <string.h>

#include "core/alloc.h"

/* Dims of an operand or of a result so far, a label each. Those of "..." have the labels
 * 1 to 8, the last one's is always 8. */
struct term {
    int value, rank;
    char label[STRATA_MAX_RANK + 1];
    int64_t dims[STRATA_MAX_RANK];
};

/* "ij,jk->ik": labels of a part, of which the text is `n` bytes; rank -1: of the output,
 * whose "..." has the `dots` dims of the operands. */
static bool read_part(struct mapping *m, struct term *t, const char *text, size_t n,
                      int rank, int *dots)
{
    int letters = 0;
    bool seen = false;
    for (size_t i = 0; i < n; i++) {
        const bool letter =
            (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
        letters += letter;
        if (letter || text[i] == '.' || text[i] == ' ')
            continue;
        map_refuse(m, "'equation' holds what is no letter");
        return false;
    }
    const int ellipsis = rank < 0 ? *dots : rank - letters;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ')
            continue;
        if (text[i] == '.' && !seen)
            for (int k = 0; k < ellipsis && t->rank < STRATA_MAX_RANK; k++)
                t->label[t->rank++] = (char)(STRATA_MAX_RANK - ellipsis + k + 1);
        else if (text[i] != '.' && t->rank < STRATA_MAX_RANK)
            t->label[t->rank++] = text[i];
        seen |= text[i] == '.';
    }
    if (seen && rank >= 0 && ellipsis > *dots)
        *dots = ellipsis;
    if (letters > STRATA_MAX_RANK || ellipsis < 0 || (rank >= 0 && t->rank != rank)) {
        map_refuse(m, "'equation' does not fit an operand of rank %d", rank);
        return false;
    }
    return true;
}

/* Of an equation without "->": dims of "...", then labels that occur once, in order. */
static void implied(struct term *out, const struct term *in, int n, int dots)
{
    for (int k = 0; k < dots; k++)
        out->label[out->rank++] = (char)(STRATA_MAX_RANK - dots + k + 1);
    for (char c = 'A'; c <= 'z'; c++) {
        int times = 0;
        for (int i = 0; i < n; i++)
            for (int d = 0; d < in[i].rank; d++)
                times += in[i].label[d] == c;
        if (times == 1 && out->rank < STRATA_MAX_RANK)
            out->label[out->rank++] = c;
    }
}

static int place_of(const struct term *t, char label)
{
    const char *at = memchr(t->label, label, (size_t)t->rank);
    return at ? (int)(at - t->label) : -1;
}

static void drop(struct term *t, int d)
{
    for (int i = d; i + 1 < t->rank; i++) {
        t->label[i] = t->label[i + 1];
        t->dims[i] = t->dims[i + 1];
    }
    t->rank--;
}

/* Two dims of one label: what lies on their diagonal. */
static void take_diagonal(struct mapping *m, struct term *t, int a, int b)
{
    int64_t perm[STRATA_MAX_RANK], shape[STRATA_MAX_RANK];
    const int64_t size = t->dims[a], square = size * size;
    const char label = t->label[a];
    int n = 0;
    if (t->dims[b] != size) {
        map_refuse(m, "dims of label '%c' are %lld and %lld", label, (long long)size,
                   (long long)t->dims[b]);
        return;
    }
    for (int d = 0; d < t->rank; d++)
        if (d != a && d != b) {
            shape[n] = t->dims[d];
            perm[n++] = d;
        }
    perm[n] = a;
    perm[n + 1] = b;
    shape[n] = square;
    t->value = compose_transpose(m, t->value, t->rank, perm, n + 1, shape);
    t->value = compose_one(m, "Slice", t->value);
    section_integer(m->g, m->s, "axes", n);
    section_integer(m->g, m->s, "begin", 0);
    section_integer(m->g, m->s, "end", square);
    section_integer(m->g, m->s, "step", size + 1);
    drop(t, b);
    drop(t, a);
    t->label[t->rank] = label;
    t->dims[t->rank++] = size;
}

static void take_diagonals(struct mapping *m, struct term *t)
{
    for (int a = 0; a < t->rank && !m->refused; a++)
        for (int b = a + 1; b < t->rank && !m->refused; b++)
            if (t->label[a] == t->label[b]) {
                take_diagonal(m, t, a, b);
                a = -1;
                break;
            }
}

/* Sum over the labels that no later step needs. */
static void sum_out(struct mapping *m, struct term *t, const struct term *a,
                    const struct term *b)
{
    int64_t axes[STRATA_MAX_RANK];
    int n = 0;
    for (int d = t->rank - 1; d >= 0; d--)
        if (place_of(a, t->label[d]) < 0 && (!b || place_of(b, t->label[d]) < 0)) {
            axes[n++] = d;
            drop(t, d);
        }
    if (n > 0)
        t->value = compose_reduce(m, "sum", t->value, axes, n, false);
}

/* A dim of 1 that meets a longer one of its label stretches: it can go. */
static void drop_ones(struct mapping *m, struct term *t, const struct term *other)
{
    const int rank = t->rank;
    for (int d = t->rank - 1; d >= 0; d--) {
        const int k = place_of(other, t->label[d]);
        if (k >= 0 && t->dims[d] == 1 && other->dims[k] != 1)
            drop(t, d);
    }
    if (t->rank != rank)
        t->value = compose_reshape(m, t->value, t->rank, t->dims);
}

/* The dims of t in three groups, in the order of a matrix: those of both operands that
 * stay, then own ones and those that are summed, or the other way round. */
struct groups {
    int64_t size[3];
    int perm[STRATA_MAX_RANK], from[3], n[3];
};

enum { GROUP_BATCH, GROUP_OWN, GROUP_SUMMED };

static int group_of(const struct term *t, int d, const struct term *other,
                    const struct term *out)
{
    return place_of(other, t->label[d]) < 0  ? GROUP_OWN
           : place_of(out, t->label[d]) >= 0 ? GROUP_BATCH
                                             : GROUP_SUMMED;
}

static void find_groups(struct groups *g, const struct term *t, const struct term *other,
                        const struct term *out, bool summed_first)
{
    const int order[] = {GROUP_BATCH, summed_first ? GROUP_SUMMED : GROUP_OWN,
                         summed_first ? GROUP_OWN : GROUP_SUMMED};
    int n = 0;
    for (int k = 0; k < 3; k++) {
        const int group = order[k];
        g->size[group] = 1;
        g->from[group] = n;
        for (int d = 0; d < t->rank; d++)
            if (group_of(t, d, other, out) == group) {
                g->perm[n++] = d;
                g->size[group] *= t->dims[d];
            }
        g->n[group] = n - g->from[group];
    }
}

/* Whether what is summed comes before the own dims as they are. */
static bool is_turned(const struct term *t, const struct term *other,
                      const struct term *out)
{
    for (int d = 0; d < t->rank; d++) {
        const int group = group_of(t, d, other, out);
        if (group != GROUP_BATCH)
            return group == GROUP_SUMMED;
    }
    return false;
}

/* Shared dims in the order of the other operand's, so that both agree. */
static void order_like(struct groups *g, const struct term *t, const struct groups *lead,
                       const struct term *other)
{
    for (int group = 0; group < 3; group++)
        for (int k = 0; group != GROUP_OWN && k < lead->n[group]; k++)
            g->perm[g->from[group] + k] =
                place_of(t, other->label[lead->perm[lead->from[group] + k]]);
}

/* The groups as a matrix; its batch dims stay as they are. */
static int as_matrices(struct mapping *m, const struct term *t, const struct groups *g)
{
    const bool turned = g->from[GROUP_SUMMED] < g->from[GROUP_OWN];
    const int batch = g->n[GROUP_BATCH];
    int64_t perm[STRATA_MAX_RANK], shape[STRATA_MAX_RANK + 2];
    for (int d = 0; d < t->rank; d++)
        perm[d] = g->perm[d];
    for (int d = 0; d < batch; d++)
        shape[d] = t->dims[g->perm[d]];
    shape[batch] = g->size[turned ? GROUP_SUMMED : GROUP_OWN];
    shape[batch + 1] = g->size[turned ? GROUP_OWN : GROUP_SUMMED];
    const bool fits = g->n[GROUP_OWN] == 1 && g->n[GROUP_SUMMED] == 1;
    return compose_transpose(m, t->value, t->rank, perm, fits ? 0 : batch + 2, shape);
}

/* The labels and dims of a product: shared ones, then a's, then b's. */
static void name_product(struct term *y, const struct term *a, const struct groups *ga,
                         const struct term *b, const struct groups *gb)
{
    *y = (struct term){0};
    for (int group = GROUP_BATCH; group <= GROUP_OWN; group++)
        for (int k = 0; k < ga->n[group]; k++) {
            const int d = ga->perm[ga->from[group] + k];
            y->label[y->rank] = a->label[d];
            y->dims[y->rank++] = a->dims[d];
        }
    for (int k = 0; k < gb->n[GROUP_OWN]; k++) {
        const int d = gb->perm[gb->from[GROUP_OWN] + k];
        y->label[y->rank] = b->label[d];
        y->dims[y->rank++] = b->dims[d];
    }
}

static void check_dims(struct mapping *m, const struct term *a, const struct term *b)
{
    for (int d = 0; d < a->rank; d++) {
        const int k = place_of(b, a->label[d]);
        if (k >= 0 && a->dims[d] != b->dims[k])
            map_refuse(m, "dims of label '%c' are %lld and %lld", a->label[d],
                       (long long)a->dims[d], (long long)b->dims[k]);
    }
}

/* The product of two terms, summed over what `out` does not need: `out` holds the labels
 * of the result and of all operands to come. */
static void contract(struct mapping *m, struct term *a, struct term *b,
                     const struct term *out)
{
    struct groups ga, gb;
    drop_ones(m, a, b);
    drop_ones(m, b, a);
    sum_out(m, a, out, b);
    sum_out(m, b, out, a);
    check_dims(m, a, b);
    const bool turned_a = is_turned(a, b, out), turned_b = !is_turned(b, a, out);
    find_groups(&ga, a, b, out, turned_a);
    find_groups(&gb, b, a, out, !turned_b);
    order_like(&gb, b, &ga, a);
    const int batch = ga.n[GROUP_BATCH], own_a = ga.n[GROUP_OWN];
    const int own_b = gb.n[GROUP_OWN];
    if (batch + own_a + own_b > STRATA_MAX_RANK || batch + 2 > STRATA_MAX_RANK)
        map_refuse(m, "a product has more than %d dims", STRATA_MAX_RANK);
    if (m->refused)
        return;
    struct term y;
    name_product(&y, a, &ga, b, &gb);
    const int left = as_matrices(m, a, &ga), right = as_matrices(m, b, &gb);
    y.value = compose_two(m, "MatrixMultiply", left, right);
    section_flag(m->g, m->s, "transpose_a", turned_a);
    section_flag(m->g, m->s, "transpose_b", turned_b);
    if (own_a != 1 || own_b != 1)
        y.value = compose_reshape(m, y.value, y.rank, y.dims);
    *a = y;
}

/* Labels of the output and of operands from `next` on. */
static void needed_later(struct term *t, const struct term *out, const struct term *in,
                         int next, int n)
{
    *t = *out;
    for (int i = next; i < n; i++)
        for (int d = 0; d < in[i].rank; d++)
            if (place_of(t, in[i].label[d]) < 0 && t->rank < STRATA_MAX_RANK)
                t->label[t->rank++] = in[i].label[d];
}

static void finish_output(struct mapping *m, const struct term *t, const struct term *out)
{
    int64_t perm[STRATA_MAX_RANK];
    for (int d = 0; d < out->rank; d++) {
        const int at = place_of(t, out->label[d]);
        if (at < 0 || place_of(out, out->label[d]) != d) {
            map_refuse(m, "an output label of 'equation' is not one of the operands'");
            return;
        }
        perm[d] = at;
    }
    const int y = compose_transpose(m, t->value, out->rank, perm, 0, NULL);
    compose_is(m, 0, y, out->rank == 0 ? 0 : -1, NULL);
}

/* The operands' and the output's labels. */
static bool read_equation(struct mapping *m, struct term *in, int n, struct term *out)
{
    const char *text = node_text(m->node, "equation", "");
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text);
    int dots = 0;
    for (int i = 0; i < n; i++) {
        const struct value *v = map_input(m, i);
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        if (!v || (!comma) != (i + 1 == n)) {
            map_refuse(m, "'equation' is not of %d operands", n);
            return false;
        }
        in[i].value = compose_input(m, i);
        memcpy(in[i].dims, v->dims, sizeof v->dims);
        if (!read_part(m, &in[i], text, (size_t)(stop - text), v->rank, &dots))
            return false;
        text = comma ? comma + 1 : end;
    }
    if (arrow)
        return read_part(m, out, arrow + 2, strlen(arrow + 2), -1, &dots);
    implied(out, in, n, dots);
    return true;
}

static void map_equation(struct mapping *m)
{
    const int n = m->node->n_in;
    struct term *in = arena_get(&m->g->arena, (size_t)n, sizeof *in);
    struct term out = {0}, later;
    if (!in || !read_equation(m, in, n, &out))
        return;
    for (int i = 0; i < n; i++)
        take_diagonals(m, &in[i]);
    for (int i = 1; i < n && !m->refused; i++) {
        needed_later(&later, &out, in, i + 1, n);
        contract(m, &in[0], &in[i], &later);
    }
    if (m->refused)
        return;
    sum_out(m, &in[0], &out, NULL);
    finish_output(m, &in[0], &out);
}

static const struct map_rule rules[] = {{.op = "Einsum", .finish = map_equation}};

const struct map_table map_einsum = {"Einsum", rules, ARRAY_LENGTH(rules)};
