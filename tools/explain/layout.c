/* SPDX-License-Identifier: Apache-2.0
 *
 * A layered drawing, after Sugiyama: layers by longest path, edges cut by bends into
 * parts of one layer, orders by barycentres with the fewest crossings kept, and x by
 * least squares to the neighbours under a least distance within each layer.
 */
#include "tools/explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { GAP_X = 28, SWEEPS = 12, BEND_WIDTH = 14 };

/* A part of an edge, from a place to one in the next layer. */
struct link {
    int from, to, layer; /* of `from` */
};

struct work {
    struct layout *l;
    struct link *links;
    size_t n_links;
    size_t *link_start;      /* links sorted by layer: the first of each */
    int *layer_start;        /* places sorted by layer and order: the first of each */
    int *sorted;             /* places, layer after layer */
    int *best;               /* order of each place with the fewest crossings */
    double *centre, *weight; /* of each place's neighbours */
};

/* ---- layers ----------------------------------------------------------------------- */

/* Vertices are in topological order, inputs first: each input moves next to a reader. */
static void assign_layers(struct layout *l, const struct graph *g)
{
    for (size_t i = 0; i < g->n_edges; i++) { /* sorted by target */
        struct place *from = &l->places[g->edges[i].from];
        struct place *to = &l->places[g->edges[i].to];
        if (to->layer <= from->layer)
            to->layer = from->layer + 1;
    }
    for (size_t v = 0; v < g->n_vertices; v++) {
        int least = INT32_MAX;
        if (g->vertices[v].kind != VERTEX_INPUT)
            continue;
        for (size_t i = 0; i < g->n_edges; i++)
            if (g->edges[i].from == (int)v && l->places[g->edges[i].to].layer < least)
                least = l->places[g->edges[i].to].layer;
        if (least != INT32_MAX)
            l->places[v].layer = least - 1;
    }
    for (size_t v = 0; v < g->n_vertices; v++)
        if (l->places[v].layer >= l->n_layers)
            l->n_layers = l->places[v].layer + 1;
}

static size_t span(const struct layout *l, const struct edge *e)
{
    return (size_t)(l->places[e->to].layer - l->places[e->from].layer);
}

static int add_bends(struct work *w, const struct graph *g, strata_error *err)
{
    struct layout *l = w->l;
    size_t n = g->n_vertices, links = 0;
    for (size_t i = 0; i < g->n_edges; i++) {
        n += span(l, &g->edges[i]) - 1;
        links += span(l, &g->edges[i]);
    }
    struct place *all = realloc(l->places, n * sizeof *all);
    if (!all)
        return error_no_memory(err, n * sizeof *all, "a drawing");
    l->places = all;
    w->links = zalloc(links, sizeof *w->links, "a drawing", err);
    if (!w->links)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct edge *e = &g->edges[i];
        size_t bends = span(l, e) - 1;
        int from = e->from;
        l->first_bend[i] = bends ? (int)l->n_places : -1;
        for (size_t b = 0; b < bends; b++) {
            int at = (int)l->n_places++;
            l->places[at] = (struct place){.vertex = -1,
                                           .layer = l->places[e->from].layer + 1 + (int)b,
                                           .width = BEND_WIDTH};
            w->links[w->n_links++] = (struct link){from, at, l->places[from].layer};
            from = at;
        }
        w->links[w->n_links++] = (struct link){from, e->to, l->places[from].layer};
    }
    return STRATA_OK;
}

/* ---- orders ----------------------------------------------------------------------- */

static int allocate(struct work *w, strata_error *err)
{
    size_t n = w->l->n_places;
    w->layer_start =
        zalloc((size_t)w->l->n_layers + 1, sizeof *w->layer_start, "a drawing", err);
    w->link_start =
        zalloc((size_t)w->l->n_layers + 1, sizeof *w->link_start, "a drawing", err);
    w->sorted = zalloc(n, sizeof *w->sorted, "a drawing", err);
    w->best = zalloc(n, sizeof *w->best, "a drawing", err);
    w->centre = zalloc(n, sizeof *w->centre, "a drawing", err);
    w->weight = zalloc(n, sizeof *w->weight, "a drawing", err);
    return w->layer_start && w->link_start && w->sorted && w->best && w->centre &&
                   w->weight
               ? STRATA_OK
               : STRATA_ENOMEM;
}

static int by_layer(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    return x->layer != y->layer ? x->layer - y->layer
           : x->to != y->to     ? x->to - y->to
                                : x->from - y->from;
}

static void sort_into_layers(struct work *w)
{
    struct layout *l = w->l;
    qsort(w->links, w->n_links, sizeof *w->links, by_layer);
    for (size_t i = 0; i < w->n_links; i++)
        w->link_start[w->links[i].layer + 1] = i + 1;
    for (int k = 0; k < l->n_layers; k++)
        if (w->link_start[k + 1] < w->link_start[k])
            w->link_start[k + 1] = w->link_start[k];
    for (size_t i = 0; i < l->n_places; i++)
        w->layer_start[l->places[i].layer + 1]++;
    for (int k = 0; k < l->n_layers; k++)
        w->layer_start[k + 1] += w->layer_start[k];
    for (size_t i = l->n_places; i-- > 0;) /* counts down to each layer's first */
        w->sorted[--w->layer_start[l->places[i].layer + 1]] = (int)i;
    for (int k = 0; k < l->n_layers; k++)
        w->layer_start[k] = w->layer_start[k + 1];
    w->layer_start[l->n_layers] = (int)l->n_places;
    for (int k = 0; k < l->n_layers; k++)
        for (int i = w->layer_start[k]; i < w->layer_start[k + 1]; i++)
            l->places[w->sorted[i]].order = i - w->layer_start[k];
}

static double position(const struct place *p, bool x)
{
    return x ? p->x : p->order;
}

/* Bends weigh more, so that long edges stay straight; the same weights on both sides of
 * a fork keep the drawing from leaning. */
static double weight_of(const struct place *p)
{
    return p->vertex < 0 ? 3 : 1;
}

/* For each place of a layer the mean of what its neighbours in the layer above, below or
 * both have: their x, or their order. */
static void find_centres(struct work *w, int layer, bool above, bool below, bool x)
{
    const struct place *places = w->l->places;
    for (int i = w->layer_start[layer]; i < w->layer_start[layer + 1]; i++)
        w->centre[w->sorted[i]] = w->weight[w->sorted[i]] = 0;
    size_t first = above && layer > 0 ? w->link_start[layer - 1] : w->link_start[layer];
    size_t end = below ? w->link_start[layer + 1] : w->link_start[layer];
    for (size_t i = first; i < end; i++) {
        bool up = w->links[i].layer < layer;
        int own = up ? w->links[i].to : w->links[i].from;
        const struct place *other = &places[up ? w->links[i].from : w->links[i].to];
        w->centre[own] += weight_of(other) * position(other, x);
        w->weight[own] += weight_of(other);
    }
    for (int i = w->layer_start[layer]; i < w->layer_start[layer + 1]; i++) {
        int own = w->sorted[i];
        w->centre[own] = w->weight[own] > 0 ? w->centre[own] / w->weight[own]
                                            : position(&places[own], x);
    }
}

/* Insertion sort by centre: stable, and layers are short. */
static void order_layer(struct work *w, int layer)
{
    int *row = w->sorted + w->layer_start[layer];
    int n = w->layer_start[layer + 1] - w->layer_start[layer];
    for (int i = 1; i < n; i++) {
        int moving = row[i], k = i;
        for (; k > 0 && w->centre[row[k - 1]] > w->centre[moving]; k--)
            row[k] = row[k - 1];
        row[k] = moving;
    }
    for (int i = 0; i < n; i++)
        w->l->places[row[i]].order = i;
}

static size_t count_crossings(const struct work *w)
{
    const struct place *p = w->l->places;
    size_t n = 0;
    for (size_t i = 0; i < w->n_links; i++)
        for (size_t j = i + 1; j < w->link_start[w->links[i].layer + 1]; j++) {
            const struct link *a = &w->links[i], *b = &w->links[j];
            n += (p[a->from].order - p[b->from].order) *
                     (p[a->to].order - p[b->to].order) <
                 0;
        }
    return n;
}

static void order_layers(struct work *w)
{
    struct layout *l = w->l;
    size_t least = SIZE_MAX;
    for (int sweep = 0; sweep < SWEEPS && least > 0; sweep++) {
        for (int k = 0; k < l->n_layers && sweep > 0; k++) {
            int layer = sweep & 1 ? k : l->n_layers - 1 - k;
            find_centres(w, layer, sweep & 1, !(sweep & 1), false);
            order_layer(w, layer);
        }
        size_t n = count_crossings(w);
        if (n >= least)
            continue;
        least = n;
        for (size_t i = 0; i < l->n_places; i++)
            w->best[i] = l->places[i].order;
    }
    for (size_t i = 0; i < l->n_places; i++) {
        l->places[i].order = w->best[i];
        w->sorted[w->layer_start[l->places[i].layer] + w->best[i]] = (int)i;
    }
}

/* ---- positions -------------------------------------------------------------------- */

/* Places that touch and move as one: the mean wish of `n` places from `first` on. */
struct run {
    double sum, weight;
    int first;
};

/* Least squares to the centres, each place right of its neighbour (pool adjacent
 * violators). */
static void place_layer(struct work *w, int layer, struct run *runs, double *offset)
{
    struct place *places = w->l->places;
    const int *row = w->sorted + w->layer_start[layer];
    int n = w->layer_start[layer + 1] - w->layer_start[layer], n_runs = 0;
    for (int i = 0; i < n; i++) {
        double weight = weight_of(&places[row[i]]);
        offset[i] = i ? offset[i - 1] + GAP_X +
                            (places[row[i - 1]].width + places[row[i]].width) / 2
                      : 0;
        runs[n_runs++] =
            (struct run){weight * (w->centre[row[i]] - offset[i]), weight, i};
        while (n_runs > 1 && runs[n_runs - 2].sum * runs[n_runs - 1].weight >=
                                 runs[n_runs - 1].sum * runs[n_runs - 2].weight) {
            n_runs--;
            runs[n_runs - 1].sum += runs[n_runs].sum;
            runs[n_runs - 1].weight += runs[n_runs].weight;
        }
    }
    for (int r = 0; r < n_runs; r++)
        for (int i = runs[r].first; i < (r + 1 < n_runs ? runs[r + 1].first : n); i++)
            places[row[i]].x = runs[r].sum / runs[r].weight + offset[i];
}

static int place_layers(struct work *w, strata_error *err)
{
    struct layout *l = w->l;
    struct run *runs = zalloc(l->n_places, sizeof *runs, "a drawing", err);
    double *offset = zalloc(l->n_places, sizeof *offset, "a drawing", err);
    for (int sweep = 0; runs && offset && sweep < 4 * SWEEPS; sweep++)
        for (int k = 0; k < l->n_layers; k++) {
            bool down = sweep & 1, last = sweep >= 4 * SWEEPS - 2;
            int layer = down ? k : l->n_layers - 1 - k;
            find_centres(w, layer, down || last, !down || last, true);
            place_layer(w, layer, runs, offset);
        }
    free(runs);
    free(offset);
    return runs && offset ? STRATA_OK : STRATA_ENOMEM;
}

int layout_make(struct layout *l, struct graph *g, strata_error *err)
{
    struct work w = {.l = l};
    *l = (struct layout){.n_places = g->n_vertices};
    l->places = zalloc(g->n_vertices, sizeof *l->places, "a drawing", err);
    l->first_bend = zalloc(g->n_edges, sizeof *l->first_bend, "a drawing", err);
    int status = l->places && l->first_bend ? STRATA_OK : STRATA_ENOMEM;
    for (size_t v = 0; v < g->n_vertices && status == STRATA_OK; v++)
        l->places[v] = (struct place){.vertex = (int)v, .width = g->vertices[v].width};
    if (status == STRATA_OK) {
        assign_layers(l, g);
        status = add_bends(&w, g, err);
    }
    if (status == STRATA_OK)
        status = allocate(&w, err);
    if (status == STRATA_OK) {
        sort_into_layers(&w);
        order_layers(&w);
        status = place_layers(&w, err);
    }
    if (status == STRATA_OK)
        status = layout_columns(l, g, err);
    if (status != STRATA_OK)
        layout_free(l);
    free(w.links);
    free(w.layer_start);
    free(w.link_start);
    free(w.sorted);
    free(w.best);
    free(w.centre);
    free(w.weight);
    return status;
}

void layout_free(struct layout *l)
{
    free(l->places);
    free(l->first_bend);
    free(l->columns);
    *l = (struct layout){0};
}
