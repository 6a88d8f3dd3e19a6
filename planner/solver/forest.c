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

/* best[subset][v] from its proper subsets, then from where it is cheapest to begin. */
static void grow_subset(int64_t *best, const int64_t *path, size_t n, size_t subset)
{
    int64_t joined[PLAN_MAX_LABELS], *row = best + subset * n;
    for (size_t v = 0; v < n; v++)
        joined[v] = PLAN_INFINITE;
    for (size_t part = (subset - 1) & subset; part > subset / 2;
         part = (part - 1) & subset)
        for (size_t v = 0; v < n; v++) {
            int64_t sum = best[part * n + v] + best[(subset ^ part) * n + v];
            joined[v] = sum < joined[v] ? sum : joined[v];
        }
    for (size_t v = 0; v < n; v++) {
        row[v] = PLAN_INFINITE;
        for (size_t u = 0; u < n; u++)
            if (path[v * n + u] + joined[u] < row[v])
                row[v] = path[v * n + u] + joined[u];
    }
}

static void fill_subsets(int64_t *best, const int64_t *path, const struct plan_forest *f,
                         size_t n)
{
    memset(best, 0, n * sizeof *best);
    for (int l = 0; l < (int)n; l++)
        if (f->wanted & UINT64_C(1) << l && f->slot[l] != FOREST_FREE)
            for (size_t v = 0; v < n; v++)
                best[((size_t)1 << f->slot[l]) * n + v] = path[v * n + (size_t)l];
    for (size_t subset = 1; subset < (size_t)1 << f->n_slots; subset++) {
        int size = __builtin_popcountll(subset);
        if (size > 1 && size <= f->max_size)
            grow_subset(best, path, n, subset);
    }
}

static void keep_roots(struct plan_forest *f, const struct plan_problem *p,
                       const int64_t *path, const int64_t *best,
                       const struct plan_label *like)
{
    size_t n = (size_t)p->n_labels, subsets = (size_t)1 << f->n_slots;
    for (size_t root = 0; root < n; root++) {
        if (!same_precision(&p->labels[root], like))
            continue;
        memcpy(f->path + root * n, path + root * n, n * sizeof *path);
        for (size_t s = 0; best && s < subsets; s++)
            f->tree[root * subsets + s] = best[s * n + root];
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

int plan_forest_make(struct plan_forest *f, const struct plan_problem *p,
                     strata_error *err)
{
    size_t n = (size_t)p->n_labels;
    bool grown = f->many;
    int64_t *path = zalloc(n * n, sizeof *path, "conversion trees", err), *best = NULL;
    int status = STRATA_ENOMEM;
    give_slots(f, p);
    grown &= f->n_slots <= FOREST_MAX_SLOTS;
    size_t cells = grown ? n << f->n_slots : 1;
    f->path = zalloc(n * n, sizeof *f->path, "conversion trees", err);
    if (grown) {
        best = zalloc(cells, sizeof *best, "conversion trees", err);
        f->tree = zalloc(cells, sizeof *f->tree, "conversion trees", err);
    }
    if (!path || !f->path || (grown && (!best || !f->tree)))
        goto done;
    status = STRATA_OK;
    for (int root = 0; root < p->n_labels; root++) {
        bool seen = false;
        for (int l = 0; l < root; l++)
            seen |= same_precision(&p->labels[l], &p->labels[root]);
        if (seen)
            continue;
        close_paths(path, f, p, root);
        if (grown)
            fill_subsets(best, path, f, n);
        keep_roots(f, p, path, best, &p->labels[root]);
    }
done:
    free(path);
    free(best);
    return status;
}

void plan_forest_free(struct plan_forest *f)
{
    free(f->path);
    free(f->tree);
}

size_t plan_forest_set(const struct plan_forest *f, uint64_t wanted)
{
    size_t set = 0;
    for (; wanted; wanted &= wanted - 1) {
        unsigned char slot = f->slot[__builtin_ctzll(wanted)];
        set |= slot == FOREST_FREE ? 0 : (size_t)1 << slot;
    }
    return set;
}

int64_t plan_forest_cost(const struct plan_forest *f, const struct plan_problem *p,
                         int tensor, int root, uint64_t wanted)
{
    if (!wanted)
        return 0;
    if ((wanted & (wanted - 1)) == 0)
        return f->path[root * p->n_labels + __builtin_ctzll(wanted)];
    if (!f->tree)
        return plan_tree(p, tensor, root, wanted, NULL, NULL);
    return f->tree[((size_t)root << f->n_slots) + plan_forest_set(f, wanted)];
}
