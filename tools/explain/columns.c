/* SPDX-License-Identifier: Apache-2.0
 *
 * A long drawing broken into columns, like a newspaper: where the fewest edges are cut.
 */
#include "tools/explain/explain.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

enum { LAYER_HEIGHT = 84, MARGIN = 30, LEAST_LAYERS = 20 };

static bool leaves(const struct layout *l, const struct edge *e, int end)
{
    return l->places[e->from].layer < end && l->places[e->to].layer >= end;
}

static size_t count_cut(const struct layout *l, const struct graph *g, int end)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_edges; i++)
        n += leaves(l, &g->edges[i], end);
    return n;
}

/* Layers that make the whole about as wide as it is high. */
static int column_layers(const struct layout *l)
{
    double widest = 0;
    for (size_t i = 0; i < l->n_places; i++)
        widest = l->places[i].width > widest ? l->places[i].width : widest;
    int layers = (int)ceil(sqrt(l->n_layers * 1.6 * widest / LAYER_HEIGHT));
    layers = layers < LEAST_LAYERS ? LEAST_LAYERS : layers;
    int columns = (l->n_layers + layers - 1) / layers;
    return (l->n_layers + columns - 1) / columns;
}

/* Near the wished end, where the fewest edges pass. */
static int best_end(const struct layout *l, const struct graph *g, int first, int wished)
{
    int best = first + wished;
    size_t least = SIZE_MAX;
    if (l->n_layers - first <= wished + wished / 4)
        return l->n_layers;
    for (int off = 0; off <= wished / 4; off++)
        for (int end = first + wished - off; end <= first + wished + off && off < wished;
             end += off ? 2 * off : 1) {
            size_t n = end < l->n_layers ? count_cut(l, g, end) : SIZE_MAX;
            if (n < least) {
                least = n;
                best = end;
            }
        }
    return best;
}

static void break_layers(struct layout *l, const struct graph *g)
{
    int wished = column_layers(l);
    for (int first = 0; first < l->n_layers;) {
        struct column *c = &l->columns[l->n_columns++];
        c->first = first;
        c->end = first = best_end(l, g, first, wished);
        c->lanes = c->end < l->n_layers ? count_cut(l, g, c->end) : 0;
    }
}

static void find_extents(struct layout *l)
{
    for (size_t k = 0; k < l->n_columns; k++) {
        struct column *c = &l->columns[k];
        c->left = INFINITY;
        c->right = -INFINITY;
        for (size_t i = 0; i < l->n_places; i++) {
            struct place *p = &l->places[i];
            if (p->layer < c->first || p->layer >= c->end)
                continue;
            p->column = (int)k;
            c->left = fmin(c->left, p->x - p->width / 2);
            c->right = fmax(c->right, p->x + p->width / 2);
        }
    }
}

static void move_places(struct layout *l, struct graph *g)
{
    size_t lanes = 0;
    double x = MARGIN;
    for (size_t k = 0; k < l->n_columns; k++)
        lanes = l->columns[k].lanes > lanes ? l->columns[k].lanes : lanes;
    double top = l->n_columns > 1 ? (double)lanes * LANE + LANE : 0;
    for (size_t k = 0; k < l->n_columns; k++) {
        struct column *c = &l->columns[k];
        double shift = x - c->left;
        for (size_t i = 0; i < l->n_places; i++)
            if (l->places[i].column == (int)k) {
                l->places[i].x += shift;
                l->places[i].y =
                    top + (l->places[i].layer - c->first + 0.5) * LAYER_HEIGHT;
                l->height = fmax(l->height, l->places[i].y + LAYER_HEIGHT / 2.0);
            }
        c->left += shift;
        c->right += shift;
        x = c->right + 2 * MARGIN + (double)c->lanes * LANE;
    }
    l->width = x - MARGIN;
    l->height += top;
    for (size_t v = 0; v < g->n_vertices; v++) {
        g->vertices[v].x = l->places[v].x;
        g->vertices[v].y = l->places[v].y;
    }
}

int layout_columns(struct layout *l, struct graph *g, strata_error *err)
{
    l->columns = zalloc((size_t)l->n_layers, sizeof *l->columns, "a drawing", err);
    if (!l->columns)
        return STRATA_ENOMEM;
    break_layers(l, g);
    find_extents(l);
    move_places(l, g);
    return STRATA_OK;
}

size_t layout_lane(const struct layout *l, const struct graph *g, size_t edge, int column)
{
    size_t n = 0;
    for (size_t i = 0; i < edge; i++)
        n += leaves(l, &g->edges[i], l->columns[column].end);
    return n;
}
