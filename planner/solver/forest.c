/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of all conversion trees of one matrix at once, for the search: the recurrence of
 * tree.c over the closure of the conversions, without the steps. The precision guard
 * depends on the root's precision, so there is a pass for each precision in use.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

static bool same_precision(const struct plan_label *a, const struct plan_label *b)
{
    return a->precision == b->precision && a->range == b->range;
}

/* Shortest conversions for content of root's precision. */
static void close_paths(int64_t *path, const struct plan_forest *f,
                        const struct plan_problem *p, int root)
{
    int n = p->n_labels;
    for (int u = 0; u < n; u++)
        for (int v = 0; v < n; v++) {
            int64_t cost = u == v ? 0 : f->conversion[u * n + v];
            bool legal = plan_keeps_precision(p, root, u, v);
            path[u * n + v] = legal && cost < PLAN_INFINITE ? cost : PLAN_INFINITE;
        }
    for (int via = 0; via < n; via++)
        for (int u = 0; u < n; u++) {
            int64_t first = path[u * n + via];
            for (int v = 0; v < n && first < PLAN_INFINITE; v++)
                if (path[via * n + v] < PLAN_INFINITE &&
                    first + path[via * n + v] < path[u * n + v])
                    path[u * n + v] = first + path[via * n + v];
        }
}

/* best[set][v] from its parts, then from where it is cheapest to begin. */
static void grow_set(int64_t *best, const int64_t *path, const struct plan_forest *f,
                     size_t n, size_t place)
{
    int64_t joined[PLAN_MAX_LABELS], *row = best + place * n;
    const uint32_t set = f->sets[place];
    for (size_t v = 0; v < n; v++)
        joined[v] = PLAN_INFINITE;
    for (uint32_t part = (set - 1) & set; part > set / 2; part = (part - 1) & set) {
        const int64_t *a = best + plan_forest_place(f, part) * n;
        const int64_t *b = best + plan_forest_place(f, set ^ part) * n;
        for (size_t v = 0; v < n; v++)
            joined[v] = a[v] + b[v] < joined[v] ? a[v] + b[v] : joined[v];
    }
    for (size_t v = 0; v < n; v++) {
        row[v] = PLAN_INFINITE;
        for (size_t u = 0; u < n; u++)
            if (path[v * n + u] + joined[u] < row[v])
                row[v] = path[v * n + u] + joined[u];
    }
}

static void fill_sets(int64_t *best, const int64_t *path, const struct plan_forest *f,
                      size_t n)
{
    memset(best, 0, n * sizeof *best);
    for (int l = 0; l < (int)n; l++)
        if (f->wanted & UINT64_C(1) << l && f->slot[l] != FOREST_FREE) {
            int64_t *row = best + plan_forest_place(f, UINT32_C(1) << f->slot[l]) * n;
            for (size_t v = 0; v < n; v++)
                row[v] = path[v * n + (size_t)l];
        }
    for (size_t place = 1; place < f->n_sets; place++)
        if (f->sets[place] & (f->sets[place] - 1))
            grow_set(best, path, f, n, place);
}

static void keep_roots(struct plan_forest *f, const struct plan_problem *p,
                       const int64_t *path, const int64_t *best,
                       const struct plan_label *like)
{
    size_t n = (size_t)p->n_labels;
    for (size_t root = 0; root < n; root++) {
        if (!same_precision(&p->labels[root], like))
            continue;
        memcpy(f->path + root * n, path + root * n, n * sizeof *path);
        for (size_t s = 0; best && s < f->n_sets; s++)
            f->tree[root * f->n_sets + s] = best[s * n + root];
    }
}

static bool both_free(const struct plan_forest *f, const struct plan_problem *p, int a,
                      int b)
{
    int n = p->n_labels;
    return same_precision(&p->labels[a], &p->labels[b]) &&
           f->conversion[a * n + b] == 0 && f->conversion[b * n + a] == 0;
}

static bool free_from_all(const struct plan_forest *f, const struct plan_problem *p,
                          int label)
{
    for (int l = 0; l < p->n_labels; l++)
        if (f->conversion[l * p->n_labels + label] != 0)
            return false;
    return p->labels[label].stage == PLAN_NONE;
}

/* A bit for each label that is wanted, unless an earlier one is as good. */
static void give_slots(struct plan_forest *f, const struct plan_problem *p)
{
    for (int l = 0; l < p->n_labels; l++) {
        if (!(f->wanted & UINT64_C(1) << l))
            continue;
        int same = 0;
        while (same < l && (!(f->wanted & UINT64_C(1) << same) ||
                            f->slot[same] == FOREST_FREE || !both_free(f, p, same, l)))
            same++;
        if (free_from_all(f, p, l))
            f->slot[l] = FOREST_FREE;
        else
            f->slot[l] = same < l ? f->slot[same] : (unsigned char)f->n_slots++;
        f->any_free |= f->slot[l] == FOREST_FREE;
    }
}

/* ---- sets ------------------------------------------------------------------------- */

/* Sets in the making. */
struct sets {
    uint32_t *v;
    size_t n, capacity;
};

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int add_set(struct sets *s, uint32_t set, strata_error *err)
{
    int status = grow(&s->v, &s->capacity, s->n, sizeof *s->v, err);
    if (status == STRATA_OK)
        s->v[s->n++] = set;
    return status;
}

static void sort_sets(struct sets *s)
{
    size_t kept = 0;
    if (s->n > 1)
        qsort(s->v, s->n, sizeof *s->v, ascending);
    for (size_t i = 0; i < s->n; i++)
        if (i == 0 || s->v[i] != s->v[kept - 1])
            s->v[kept++] = s->v[i];
    s->n = kept;
}

/* What the choices of an operation that reads the tensor want, each once. */
static int find_wants(struct sets *out, const struct plan_forest *f,
                      const struct plan_model *m, int tensor, int op, strata_error *err)
{
    const struct plan_op *o = &m->p.ops[op];
    int status = STRATA_OK;
    out->n = 0;
    for (size_t k = 0; k < o->n_choices && status == STRATA_OK; k++) {
        uint64_t wanted = 0;
        for (int i = 0; i < o->n_in; i++)
            if (o->in[i] == tensor)
                wanted |= UINT64_C(1) << plan_in_label(&o->choices[k], i);
        if (!m->banned[m->first[op] + k])
            status = add_set(out, plan_forest_set(f, wanted), err);
    }
    sort_sets(out);
    return status;
}

/* Each of `from` with each of the wants, or with each part of it; more than FOREST_SETS:
 * some of them. */
static int join(struct sets *out, const struct sets *from, const struct sets *wants,
                bool parts, strata_error *err)
{
    int status = STRATA_OK;
    out->n = 0;
    for (size_t w = 0; w < wants->n && out->n <= FOREST_SETS; w++) {
        for (size_t i = 0; i < from->n && status == STRATA_OK; i++) {
            uint32_t part = wants->v[w];
            status = add_set(out, from->v[i] | part, err);
            while (parts && part && status == STRATA_OK) {
                part = (part - 1) & wants->v[w];
                status = add_set(out, from->v[i] | part, err);
            }
        }
        if (status != STRATA_OK)
            return status;
        sort_sets(out);
    }
    return status;
}

static void swap(struct sets *a, struct sets *b)
{
    const struct sets c = *a;
    *a = *b;
    *b = c;
}

/* What choices of the readers want together, and parts of that. */
static int find_wanted_sets(struct sets *all, struct sets *whole,
                            const struct plan_forest *f, const struct plan_model *m,
                            int tensor, strata_error *err)
{
    const struct plan_tensor *t = &m->p.tensors[tensor];
    struct sets wants = {0}, next = {0};
    int status = add_set(all, 0, err);
    if (status == STRATA_OK)
        status = add_set(whole, 0, err);
    for (size_t r = 0; r < t->n_readers && all->n <= FOREST_SETS; r++) {
        if (r > 0 && t->readers[r].op == t->readers[r - 1].op)
            continue;
        if (status == STRATA_OK)
            status = find_wants(&wants, f, m, tensor, t->readers[r].op, err);
        if (status == STRATA_OK)
            status = join(&next, all, &wants, true, err);
        swap(all, &next);
        if (status == STRATA_OK)
            status = join(&next, whole, &wants, false, err);
        swap(whole, &next);
    }
    free(wants.v);
    free(next.v);
    return status;
}

/* All that are no larger than there are readers. */
static int find_small_sets(struct sets *all, struct sets *whole,
                           const struct plan_forest *f, size_t readers, strata_error *err)
{
    int status = STRATA_OK;
    for (uint32_t set = 0; set < UINT32_C(1) << f->n_slots && status == STRATA_OK;
         set++) {
        if ((size_t)__builtin_popcount(set) > readers)
            continue;
        status = add_set(all, set, err);
        if (status == STRATA_OK && (set || f->any_free))
            status = add_set(whole, set, err);
    }
    return status;
}

static int find_sets(struct plan_forest *f, const struct plan_model *m, int tensor,
                     strata_error *err)
{
    struct sets all = {0}, whole = {0};
    int status =
        f->n_slots <= FOREST_FEW
            ? find_small_sets(&all, &whole, f, m->p.tensors[tensor].n_readers, err)
            : find_wanted_sets(&all, &whole, f, m, tensor, err);
    if (status == STRATA_OK && all.n <= FOREST_SETS) {
        f->whole = zalloc(all.n, sizeof *f->whole, "conversion trees", err);
        status = f->whole ? STRATA_OK : STRATA_ENOMEM;
    }
    if (f->whole) {
        f->sets = all.v;
        f->n_sets = all.n;
        f->n_whole = whole.n;
        all.v = NULL;
        for (size_t i = 0; i < whole.n; i++)
            f->whole[plan_forest_place(f, whole.v[i])] = true;
    }
    free(all.v);
    free(whole.v);
    return status;
}

/* ---- public ----------------------------------------------------------------------- */

int plan_forest_open(struct plan_forest *f, const struct plan_model *m, int tensor,
                     strata_error *err)
{
    give_slots(f, &m->p);
    return f->many && f->n_slots <= FOREST_SLOTS ? find_sets(f, m, tensor, err)
                                                 : STRATA_OK;
}

bool plan_forest_same(const struct plan_forest *a, const struct plan_forest *b)
{
    return a->conversion == b->conversion && a->wanted == b->wanted &&
           a->many == b->many && a->n_sets == b->n_sets && a->n_whole == b->n_whole &&
           (a->n_sets == 0 ||
            (memcmp(a->sets, b->sets, a->n_sets * sizeof *a->sets) == 0 &&
             memcmp(a->whole, b->whole, a->n_sets * sizeof *a->whole) == 0));
}

int plan_forest_grow(struct plan_forest *f, const struct plan_problem *p,
                     strata_error *err)
{
    const size_t n = (size_t)p->n_labels, cells = n * f->n_sets;
    int64_t *path = zalloc(n * n, sizeof *path, "conversion trees", err), *best = NULL;
    int status = STRATA_ENOMEM;
    f->path = zalloc(n * n, sizeof *f->path, "conversion trees", err);
    if (f->n_sets > 0) {
        best = zalloc(cells, sizeof *best, "conversion trees", err);
        f->tree = zalloc(cells, sizeof *f->tree, "conversion trees", err);
    }
    if (!path || !f->path || (f->n_sets > 0 && (!best || !f->tree)))
        goto done;
    status = STRATA_OK;
    for (int root = 0; root < p->n_labels; root++) {
        bool seen = false;
        for (int l = 0; l < root; l++)
            seen |= same_precision(&p->labels[l], &p->labels[root]);
        if (seen)
            continue;
        close_paths(path, f, p, root);
        if (best)
            fill_sets(best, path, f, n);
        keep_roots(f, p, path, best, &p->labels[root]);
    }
done:
    free(path);
    free(best);
    return status;
}

void plan_forest_free(struct plan_forest *f)
{
    free(f->sets);
    free(f->whole);
    free(f->path);
    free(f->tree);
}

uint32_t plan_forest_set(const struct plan_forest *f, uint64_t wanted)
{
    uint32_t set = 0;
    for (; wanted; wanted &= wanted - 1) {
        unsigned char slot = f->slot[__builtin_ctzll(wanted)];
        set |= slot == FOREST_FREE ? 0 : UINT32_C(1) << slot;
    }
    return set;
}

size_t plan_forest_place(const struct plan_forest *f, uint32_t set)
{
    size_t low = 0, high = f->n_sets;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (f->sets[middle] < set)
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->n_sets && f->sets[low] == set ? low : f->n_sets;
}

int64_t plan_forest_cost(const struct plan_forest *f, const struct plan_problem *p,
                         int tensor, int root, uint64_t wanted)
{
    size_t place = f->n_sets;
    if (!wanted)
        return 0;
    if ((wanted & (wanted - 1)) == 0)
        return f->path[root * p->n_labels + __builtin_ctzll(wanted)];
    if (f->tree && !(wanted & ~f->wanted))
        place = plan_forest_place(f, plan_forest_set(f, wanted));
    return place < f->n_sets ? f->tree[(size_t)root * f->n_sets + place]
                             : plan_tree(p, tensor, root, wanted, NULL, NULL);
}
